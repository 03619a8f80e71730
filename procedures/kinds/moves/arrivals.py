"""Nodes that get the copies which leave another, and how many each takes at once. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from keys.catalog.catalog import Catalog
from keys.model.tables import TableInfo
from metasrv_base.ids import RegionId, number_of, table_of
from metasrv_base.values.frozen import frozen
from procedures.kinds.moves.leaving_copies import LeavingCopy
from procedures.ports import NodeView
from procedures.steps.copies.copy_placing import one_more
from procedures.steps.copies.neighbours import Neighbours
from procedures.steps.placing import NodeRules, zone_rank

MOVES_MAX = 32
"""Moves of one drain at once."""
ARRIVALS_MAX = 4
"""Copies that arrive at one node at once: each takes its disk and its network until it has caught
up."""


@frozen
class DrainRules:
    """The conditions under which copies leave a node now."""

    node: str
    targets: Collection[str]
    """Nodes that may get copies; empty: any."""
    begun: Collection[str]
    """Regions that are not begun again."""
    arriving: Mapping[str, str]
    """Regions of which a copy is on its way -> the nodes that get it."""


@dataclass(slots=True)
class Arrivals:
    """The nodes that get copies, as they are chosen."""

    catalog: Catalog
    rules: DrainRules
    views: dict[str, NodeView]
    arriving: Counter[str]
    """Node -> copies that are on their way to it."""
    leaders: Neighbours
    """Partition groups by their leaders, for only copies, which lead where they go."""
    copies: Neighbours
    """The same by all copies, for others."""
    waited: int = 0
    """Choices that wait for a node which takes no more at this moment."""

    @classmethod
    def of(cls, catalog: Catalog, views: Iterable[NodeView], rules: DrainRules) -> "Arrivals":
        """The regions that are on their way draw the others of their groups to their nodes."""
        by_id = {view.node_id: view for view in views}
        arriving = Counter(rules.arriving.values())
        neighbours = Neighbours(catalog.partition_groups), Neighbours(catalog.copy_groups)
        arrivals = cls(catalog, rules, by_id, arriving, *neighbours)
        for region, node in rules.arriving.items():
            number = RegionId(int(region))
            table = catalog.tables.get(table_of(number))
            if table is not None:
                arrivals._note(table.info, number_of(number), node)
        return arrivals

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

    def is_alive(self, node: str) -> bool:
        return node in self.views and self.views[node].alive

    def chosen(self, copy: LeavingCopy) -> str | None:
        """The node that gets the copy; None: none may now.

        It is the one that `one_more` says. A region waits while that one takes no more, if it has
        others of the region's partition group, or if the copy is an only one, which is to lead, and
        all others are in worse zones of its placement; else another takes it.
        """
        info, number = copy.table.info, copy.region.number
        staying = [node for node in copy.region.nodes if node != self.rules.node]
        beside = (self.copies if staying else self.leaders).beside(info, number)
        rules, excluded, full = self._rules_of(info), self._excluded(), self.full
        views = tuple(self.views.values())
        node = one_more(staying, views, excluded, rules, beside)
        if node is not None and node in full:
            in_group, best = beside.group.get(node), self._rank(node, rules)
            node = one_more(staying, views, {*excluded, *full}, rules, beside)
            if in_group or node is None or (not staying and self._rank(node, rules) > best):
                self.waited += 1
                return None
        if node is not None:
            self.views[node] = replace(self.views[node], regions=self.views[node].regions + 1)
            self.arriving[node] += 1
            self._note(info, number, node)
        return node

    def _note(self, info: TableInfo, number: int, node: str) -> None:
        self.leaders.note(info, number, node)
        self.copies.note(info, number, node)

    def _rank(self, node: str, rules: NodeRules) -> int:
        return zone_rank(self.views[node].zone, rules.preferred_zones)

    def _excluded(self) -> set[str]:
        targets = self.rules.targets
        return {self.rules.node, *(self.views.keys() - set(targets) if targets else ())}

    def _rules_of(self, info: TableInfo) -> NodeRules:
        return NodeRules.of(self.catalog.placing.placement_of(info), info.engine)
