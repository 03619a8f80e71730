"""The copies that are to leave a node, in the order in which they go. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from immutables import Map

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions
from keys.model.tables import RegionRoute
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.values.frozen import frozen
from procedures.kinds.moves.copy_move import root_on

Member = tuple[int, int]
"""Table id and number of a region."""


@frozen
class LeavingCopy:
    """A copy that is to leave a node."""

    table: CatalogTable
    region: RegionRoute
    root: str


@dataclass(slots=True)
class LeavingGroups:
    """The regions that one round of a drain has not begun to move. A round has each once, so what
    has been begun is looked at no more, however many there are."""

    together: list[list[Member]]
    """The members of each partition group."""
    alone: list[list[Member]]
    """The regions of each table of a tablespace `default`; they go last."""


def has_copies(held: HeldRegions) -> bool:
    """Whether a region of a table at a node has, or had, more than one copy."""
    return any(region.copies_version for region in held)


def copied_tables(catalog: Catalog, node: str) -> Turns[list[int]]:
    """Ids of the tables with copies of which *node* has a region: from the index."""
    tables = list[int]()
    for some in slices(catalog.nodes.get(node, Map()).items()):
        tables += (number for number, held in some if has_copies(held))
        yield
    return tables


def tables_on(catalog: Catalog, node: str) -> Mapping[int, HeldRegions]:
    """Ids of the tables of which *node* has a region -> those regions, in an order that changes
    only by what comes and goes."""
    return catalog.nodes.get(node, Map[int, HeldRegions]())


def leaving(catalog: Catalog, node: str, numbers: Iterable[int]) -> Iterator[LeavingCopy]:
    """The copies that *node* has of regions of these tables. Those of tables that are being dropped
    stay, and so do rows that are in the memory of one process."""
    for number in numbers:
        table = _leaving_table(catalog, number)
        if table is None:
            continue
        for region in table.route.region_routes:
            root = root_on(region, node)
            if root is not None:
                yield LeavingCopy(table, region, root)


def _leaving_table(catalog: Catalog, number: int) -> CatalogTable | None:
    table = catalog.tables.get(number)
    if table is None or not catalog.shows(table) or table.info.is_volatile:
        return None
    return table


def leaving_groups(catalog: Catalog, node: str) -> Turns[LeavingGroups]:
    """All regions of which *node* has a copy, those of dropped tables left out. From the index, no
    table is decoded."""
    here, spaces = tables_on(catalog, node), dict[int, int]()
    for space, tables in catalog.placing.grouped.items():
        for some in slices(tables):
            spaces.update((table, space) for table in some if table in here)
            yield
    groups, alone = dict[tuple[int, int], list[Member]](), list[list[Member]]()
    for part in slices(here.items()):
        for table, held in part:
            members = [(table, region.number) for region in held]
            if table not in spaces:
                alone.append(members)
                continue
            for member in members:
                groups.setdefault((spaces[table], member[1]), []).append(member)
        yield
    return LeavingGroups([sorted(groups[group]) for group in sorted(groups)], alone)


def copy_of(catalog: Catalog, node: str, member: Member) -> LeavingCopy | None:
    """The copy that *node* has of the region; None: it has none that is to leave."""
    table = _leaving_table(catalog, member[0])
    if table is None:
        return None
    region = _numbered(table.route.region_routes, member[1])
    root = None if region is None else root_on(region, node)
    return None if region is None or root is None else LeavingCopy(table, region, root)


def _numbered(regions: Sequence[RegionRoute], number: int) -> RegionRoute | None:
    """The region of that number, which is its position in most tables."""
    if number < len(regions) and regions[number].number == number:
        return regions[number]
    return next((region for region in regions if region.number == number), None)


def member_left(copy: LeavingCopy, node: str) -> str | None:
    """Another node with a copy in sync, where as many as the table is to have are in sync without
    that of *node*: it goes, and none is added. None: one is."""
    others = [name for name in copy.region.in_sync if name != node]
    return min(others) if len(others) >= copy.table.info.replicas else None
