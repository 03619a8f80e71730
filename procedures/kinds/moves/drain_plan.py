"""Selection of the copies that leave a node, and of the nodes that get them. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from immutables import Map

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions
from keys.model.tables import RegionRoute, RegionState
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.values.frozen import frozen
from procedures.kinds.moves.copy_move import MoveCopy, root_on
from procedures.ports import NodeView
from procedures.steps.copies.copy_placing import one_more

MOVES_MAX = 32
"""Moves of one drain at once."""
ARRIVALS_MAX = 4
"""Copies that arrive at one node at once: each takes its disk and its network until it has caught
up."""


@frozen
class LeavingCopy:
    """A copy that is to leave a node."""

    table: CatalogTable
    region: RegionRoute
    root: str


@frozen
class DrainRules:
    """The conditions under which copies leave a node now."""

    node: str
    targets: Collection[str]
    """Nodes that may get copies; empty: any."""
    begun: Collection[str]
    """Regions that are not begun again."""
    arriving: Sequence[str]
    """The node of each copy that is on its way."""


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


def leaving(catalog: Catalog, node: str, numbers: Iterable[int]) -> Iterator[LeavingCopy]:
    """The copies that *node* has of regions of these tables. Those of tables that are being dropped
    stay, and so do rows that are in the memory of one process."""
    for number in numbers:
        table = catalog.tables.get(number)
        if table is None or not catalog.shows(table) or table.info.is_volatile:
            continue
        for region in table.route.region_routes:
            root = root_on(region, node)
            if root is not None:
                yield LeavingCopy(table, region, root)


def moves_due(
    catalog: Catalog, views: Iterable[NodeView], rules: DrainRules, reason: str
) -> Turns[list[MoveCopy]]:
    """The moves that may begin now. A region for which no node has room waits, as does one that is
    not open."""
    by_id = {view.node_id: view for view in views}
    arriving, due = Counter(rules.arriving), list[MoveCopy]()
    numbers = yield from copied_tables(catalog, rules.node)
    for copy in leaving(catalog, rules.node, numbers):
        if arriving.total() >= MOVES_MAX:
            break
        yield
        region = copy.region
        if region.region_id in rules.begun or region.state is not RegionState.OPEN:
            continue
        to_node = member_left(copy, rules.node)
        if to_node is None:
            full = {node for node, count in arriving.items() if count >= ARRIVALS_MAX}
            to_node = destination(catalog, copy, by_id, rules, full)
            if to_node is None:
                continue
            by_id[to_node] = replace(by_id[to_node], regions=by_id[to_node].regions + 1)
            arriving[to_node] += 1
        due.append(
            MoveCopy(
                table_id=copy.table.info.table_id,
                name=copy.table.info.full_name,
                region_id=region.region_id,
                from_node=rules.node,
                root=copy.root,
                to_node=to_node,
                reason=reason,
            )
        )
    return due


def member_left(copy: LeavingCopy, node: str) -> str | None:
    """Another node with a copy in sync, where as many as the table is to have are in sync without
    that of *node*: it goes, and none is added. None: one is."""
    others = [name for name in copy.region.in_sync if name != node]
    return min(others) if len(others) >= copy.table.info.replicas else None


def destination(
    catalog: Catalog,
    copy: LeavingCopy,
    views: Mapping[str, NodeView],
    rules: DrainRules,
    full: Collection[str] = (),
) -> str | None:
    """The node that gets the copy: one that the placement allows, in a zone without another copy
    where there is one. None: none may."""
    unwanted = views.keys() - set(rules.targets) if rules.targets else set[str]()
    node_filter = catalog.placing.placement_of(copy.table.info).node_filter
    staying = [node for node in copy.region.nodes if node != rules.node]
    excluded = {rules.node, *unwanted, *full}
    return one_more(staying, views.values(), excluded, copy.table.info.engine, node_filter)
