"""Selection of the copies that leave a node, and of the nodes that get them. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from immutables import Map

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions
from keys.model.tables import CopyRole, RegionRoute, RegionState
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.errors import Unavailable
from metasrv_base.values.frozen import frozen
from procedures.kinds.moves.copy_move import MoveCopy, root_on
from procedures.kinds.moves.dropped_move import MoveDropped
from procedures.ports import NodeView
from procedures.steps.copies.copy_placing import one_more
from procedures.steps.placing import NodeRules, place, place_in_groups, zone_rank

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
    begun: Mapping[str, str]
    """Regions that are not begun again -> the nodes that get them."""
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


def tables_on(catalog: Catalog, node: str) -> Collection[int]:
    """Ids of the tables of which *node* has a region, in an order that changes only by what comes
    and goes."""
    return catalog.nodes.get(node, Map[int, HeldRegions]())


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


@dataclass(slots=True)
class Arrivals:
    """The nodes that get copies, as they are chosen."""

    catalog: Catalog
    rules: DrainRules
    views: dict[str, NodeView]
    arriving: Counter[str]
    """Node -> copies that are on their way to it."""
    gone_to: dict[tuple[int, int], Counter[str]] = field(default_factory=dict)
    """Tablespace and number of a region -> the nodes that get regions of that group."""

    @property
    def full(self) -> set[str]:
        return {node for node, count in self.arriving.items() if count >= ARRIVALS_MAX}

    @property
    def is_over(self) -> bool:
        """Whether nothing may begin before something has arrived."""
        able = {node for node, view in self.views.items() if view.alive and not view.cordoned}
        able -= {self.rules.node}
        able &= set(self.rules.targets) or able
        return self.arriving.total() >= MOVES_MAX or (bool(able) and able <= self.full)

    def chosen(self, copy: LeavingCopy) -> str | None:
        """The node that gets the copy; None: none may now."""
        node = self._only_copy(copy) if len(copy.region.nodes) == 1 else self._one_more(copy)
        if node is not None:
            self.views[node] = replace(self.views[node], regions=self.views[node].regions + 1)
            self.arriving[node] += 1
            self.note(copy, node)
        return node

    def note(self, copy: LeavingCopy, node: str) -> None:
        """The other regions of its partition group follow it."""
        space = copy.table.info.tablespace_id
        if space is not None:
            self.gone_to.setdefault((space, copy.region.number), Counter())[node] += 1

    def _one_more(self, copy: LeavingCopy) -> str | None:
        """A node that the placement allows, in a zone without another copy where there is one."""
        staying = [node for node in copy.region.nodes if node != self.rules.node]
        excluded = {*self._excluded(), *self.full}
        return one_more(staying, self.views.values(), excluded, self._rules_of(copy))

    def _only_copy(self, copy: LeavingCopy) -> str | None:
        """The node in the best of the preferred zones where most of the region's partition group is
        led, or will be: the region waits while that one is full. Where no group chooses, another in
        an equal zone takes it."""
        rules, group = self._rules_of(copy), self._group_of(copy)
        if group is None and not rules.preferred_zones:
            return self._one_more(copy)
        views, excluded = self.views.values(), self._excluded()
        try:
            (node,) = place_in_groups(views, [group or {}], excluded, rules)
            if node.node_id in self.full and not group:
                best = zone_rank(node.zone, rules.preferred_zones)
                (node,) = place(views, 1, {*excluded, *self.full}, rules)
                if zone_rank(node.zone, rules.preferred_zones) > best:
                    return None
        except Unavailable:
            return None
        return None if node.node_id in self.full else node.node_id

    def _group_of(self, copy: LeavingCopy) -> Mapping[str, int] | None:
        """Node -> regions of its partition group that it leads, or will; None: it has no group."""
        info, number = copy.table.info, copy.region.number
        if info.tablespace_id is None:
            return None
        group = Counter(self.catalog.partition_groups(info).get(number, {}))
        return group + self.gone_to.get((info.tablespace_id, number), Counter())

    def _excluded(self) -> set[str]:
        targets = self.rules.targets
        return {self.rules.node, *(self.views.keys() - set(targets) if targets else ())}

    def _rules_of(self, copy: LeavingCopy) -> NodeRules:
        info = copy.table.info
        return NodeRules.of(self.catalog.placing.placement_of(info), info.engine)


def moves_due(
    catalog: Catalog, views: Iterable[NodeView], rules: DrainRules, reason: str
) -> Turns[list[MoveCopy]]:
    """The moves that may begin now. A region for which no node has room waits, as does one that is
    not open, or whose files a failover is still bringing over."""
    by_id = {view.node_id: view for view in views}
    arrivals, due = Arrivals(catalog, rules, by_id, Counter(rules.arriving)), list[MoveCopy]()
    for number in tables_on(catalog, rules.node):
        yield
        for copy in leaving(catalog, rules.node, (number,)):
            if arrivals.is_over:
                return due
            region = copy.region
            if region.region_id in rules.begun:
                arrivals.note(copy, rules.begun[region.region_id])
                continue
            if region.state is not RegionState.OPEN or region.borrows:
                continue
            to_node = member_left(copy, rules.node) or arrivals.chosen(copy)
            if to_node is not None:
                due.append(_move(copy, rules.node, to_node, reason))
    return due


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


def member_left(copy: LeavingCopy, node: str) -> str | None:
    """Another node with a copy in sync, where as many as the table is to have are in sync without
    that of *node*: it goes, and none is added. None: one is."""
    others = [name for name in copy.region.in_sync if name != node]
    return min(others) if len(others) >= copy.table.info.replicas else None


def dropped_moves_due(
    catalog: Catalog, views: Iterable[NodeView], rules: DrainRules, reason: str
) -> Turns[list[MoveDropped]]:
    """The moves of regions of dropped tables that may begin now, as `moves_due`."""
    by_id = {view.node_id: view for view in views}
    arrivals, due = Arrivals(catalog, rules, by_id, Counter(rules.arriving)), list[MoveDropped]()
    for some in slices(catalog.all_dropped()):
        for copy in (copy for table in some for copy in _leaving_dropped(table, rules.node)):
            if arrivals.is_over:
                return due
            region = copy.region
            if region.region_id in rules.begun:
                arrivals.note(copy, rules.begun[region.region_id])
                continue
            if region.state is RegionState.LOST or region.borrows or region.unverified:
                continue
            to_node = member_left(copy, rules.node)
            if to_node is None or to_node not in by_id or not by_id[to_node].alive:
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
