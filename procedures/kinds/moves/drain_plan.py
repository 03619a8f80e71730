"""Selection of the copies that leave a node now, and of the nodes that get them. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import CopyRole, RegionState
from metasrv_base.concurrency.turns import Turns, slices
from procedures.kinds.moves.arrivals import Arrivals, DrainRules
from procedures.kinds.moves.copy_move import MoveCopy, root_on
from procedures.kinds.moves.dropped_move import MoveDropped
from procedures.kinds.moves.leaving_copies import (
    LeavingCopy,
    LeavingGroups,
    Member,
    copy_of,
    leaving,
    member_left,
    tables_on,
)
from procedures.ports import NodeView

WAITING_MAX = 64
"""Regions that wait for a node which takes no more at that moment, after which a look tries no more
of their kind: each is tried again at every look."""


def moves_due(
    catalog: Catalog,
    views: Iterable[NodeView],
    rules: DrainRules,
    groups: LeavingGroups,
    reason: str,
) -> Turns[list[MoveCopy]]:
    """The moves that may begin now, in the order of *groups*, which have them no more afterwards. A
    region for which no node has room waits, as does one that is not open, or whose files a failover
    is still bringing over. If a member of a partition group waits for a node that takes no more at
    that moment, the rest of the group waits with it, and other groups begin meanwhile."""
    arrivals, due = Arrivals.of(catalog, views, rules), list[MoveCopy]()
    for part in (groups.together, groups.alone):
        waited = arrivals.waited
        for group in part:
            yield
            if arrivals.is_over or arrivals.waited - waited >= WAITING_MAX:
                break
            group[:] = _begin(group, arrivals, due, reason)
        part[:] = [group for group in part if group]
    return due


def _begin(
    group: Sequence[Member], arrivals: Arrivals, due: list[MoveCopy], reason: str
) -> list[Member]:
    """Adds the moves of *group* that may begin now to *due*; returns the members that are left."""
    catalog, rules, later = arrivals.catalog, arrivals.rules, list[Member]()
    for position, member in enumerate(group):
        waited = arrivals.waited
        copy = copy_of(catalog, rules.node, member)
        if copy is None or copy.region.region_id in rules.begun:
            continue
        to_node = None
        if copy.region.state is RegionState.OPEN and not copy.region.borrows:
            to_node = member_left(copy, rules.node) or arrivals.chosen(copy)
        if to_node is not None:
            due.append(_move(copy, rules.node, to_node, reason))
        else:
            later.append(member)
        has_group = copy.table.info.tablespace_id is not None
        if arrivals.is_over or (has_group and arrivals.waited > waited):
            return [*later, *group[position + 1 :]]
    return later


def left(catalog: Catalog, node: str, limit: int) -> Turns[list[str]]:
    """The first regions of which the node has a copy that is to move."""
    regions = list[str]()
    for number in tables_on(catalog, node):
        yield
        regions += (copy.region.region_id for copy in leaving(catalog, node, (number,)))
        if len(regions) >= limit:
            break
    return regions[:limit]


def _move(copy: LeavingCopy, from_node: str, to_node: str, reason: str) -> MoveCopy:
    return MoveCopy(
        table_id=copy.table.info.table_id,
        name=copy.table.info.full_name,
        region_id=copy.region.region_id,
        from_node=from_node,
        root=copy.root,
        to_node=to_node,
        reason=reason,
    )


def dropped_moves_due(
    catalog: Catalog, views: Iterable[NodeView], rules: DrainRules, reason: str
) -> Turns[list[MoveDropped]]:
    """The moves of regions of dropped tables that may begin now, as `moves_due`."""
    arrivals, due = Arrivals.of(catalog, views, rules), list[MoveDropped]()
    for some in slices(catalog.all_dropped()):
        for copy in (copy for table in some for copy in _leaving_dropped(table, rules.node)):
            if arrivals.is_over:
                return due
            region = copy.region
            if region.region_id in rules.begun:
                continue
            if region.state is RegionState.LOST or region.borrows or region.unverified:
                continue
            to_node = member_left(copy, rules.node)
            if to_node is None or not arrivals.is_alive(to_node):
                to_node = arrivals.chosen(copy) or _learner_left(copy, rules.node)
            if to_node is not None:
                nodes = (rules.node, to_node)
                due.append(MoveDropped.of(copy.table, region, nodes, reason))
        yield
    return due


def _leaving_dropped(table: CatalogTable, node: str) -> Iterator[LeavingCopy]:
    """The copies that *node* has of regions of a dropped table. Rows in memory are gone."""
    for region in () if table.info.is_volatile else table.route.region_routes:
        root = root_on(region, node)
        if root is not None:
            yield LeavingCopy(table, region, root)


def _learner_left(copy: LeavingCopy, node: str) -> str | None:
    """Another node with a learner that is one copy too many, where no node may take a copy more:
    the table was dropped while the copy of *node* was moved. The learner is made anew."""
    others = copy.region.copies if len(copy.region.nodes) > copy.table.info.replicas else ()
    learners = (each.node for each in others if each.role is CopyRole.LEARNER)
    return next((name for name in learners if name != node), None)


def dropped_on(catalog: Catalog, node: str, limit: int) -> Turns[list[CatalogTable]]:
    """The first tables that are dropped, or are being dropped, and of which *node* has a region."""
    tables = list[CatalogTable]()
    for number in tables_on(catalog, node):
        yield
        table = catalog.tables[number]
        if not catalog.shows(table) and not table.info.is_volatile:
            tables.append(table)
    for some in slices(catalog.all_dropped()):
        tables += (table for table in some if node in table.route.numbers_by_node())
        if len(tables) >= limit:
            break
        yield
    return tables[:limit]
