"""Search for regions that a copy in a better of the preferred zones of their placement could lead.

They are there when a placement has got other zones, or when a leader failed over to another zone
and its copy is in sync again. A table is looked at only while a copy of one of its regions is in a
better zone than the leader: other changes of its part of the catalog's index make it looked at
again.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from keys.catalog.catalog import Catalog
from keys.catalog.tables.heads import HeldRegions
from keys.model.placing.placements import DEFAULT_PLACEMENT_ID
from keys.model.tables import CopyRole, RegionRoute, RegionState
from metasrv.leadership.copies.copy_survey import copied_tables, regions_of
from metasrv_base.concurrency.turns import Turns
from metasrv_base.values.frozen import frozen
from procedures.kinds.failover.failover_plan import needs_another
from procedures.kinds.failover.next_leader import LeaderChoice, next_leader
from procedures.kinds.failover.switch_leader import SwitchLeader
from procedures.ports import NodeView
from procedures.steps.placing import NodeRules, unmet, zone_rank

SWITCHES_MAX = 8
"""Planned switches of leaders that are under way at once: each makes the writes of its region wait
for a fraction of a second, and copies write their memory to files."""

Zones = Mapping[int, tuple[str, ...]]
"""Id of a placement -> its preferred zones."""


@frozen
class ZoneFacts:
    """The nodes, and what is done already, at one moment."""

    views: Mapping[str, NodeView]
    leaving: Collection[str] = ()
    """Ids of nodes that a living procedure empties: they are to lead nothing more."""
    busy: Collection[str] = ()
    """Ids of regions that wait for something else."""
    tried: Mapping[str, str] = field(default_factory=dict)
    """Region id -> the node to which its leader was switched, or not, a moment ago."""

    def rank(self, node: str, zones: tuple[str, ...]) -> int:
        """The rank of its zone; of a node that is not registered that of the worst."""
        view = self.views.get(node)
        return len(zones) if view is None else zone_rank(view.zone, zones)

    def may_lead(self, node: str, region: RegionRoute, rules: NodeRules) -> bool:
        """Whether the node lives and answers orders, nobody wants its leaders elsewhere, and it has
        the region's files."""
        view = self.views.get(node)
        if view is None or not view.takes_orders or view.cordoned or node in self.leaving:
            return False
        return region.region_id not in view.lost and unmet(view, rules.node_filter) is None


@dataclass(slots=True)
class ZoneFollowers:
    """The memory from look to look, of one term."""

    _calm: dict[int, int] = field(default_factory=dict)
    """Table id -> digest of its part of the index, for tables of whose regions no copy is in a
    better zone than the leader."""
    _judged_by: tuple[Zones, Mapping[str, str]] = field(default=({}, {}))
    """The preferred zones, and the zones of the nodes, by which they were judged."""

    def look(
        self, catalog: Catalog, facts: ZoneFacts, limit: int
    ) -> Turns[tuple[SwitchLeader, ...]]:
        """Returns switches that may begin now, at most *limit*."""
        zones = preferred_zones(catalog)
        judged_by = zones, {name: view.zone for name, view in facts.views.items()}
        if judged_by != self._judged_by:
            self._calm, self._judged_by = {}, judged_by
        due: list[SwitchLeader] = []
        tables = yield from _tables_of(catalog, zones)
        self._calm = {table: mark for table, mark in self._calm.items() if table in tables}
        for table_id, held in sorted(tables.items()):
            mark = hash(tuple((node, held[node]) for node in sorted(held)))
            if self._calm.get(table_id) == mark:
                continue
            yield
            is_calm = True
            for switch in _switches(catalog, table_id, facts):
                is_calm = False
                due += [] if switch is None else [switch]
                if len(due) >= limit:
                    return tuple(due)
            if is_calm:
                self._calm[table_id] = mark
        return tuple(due)


def preferred_zones(catalog: Catalog) -> Zones:
    """The placements that prefer zones."""
    placing = catalog.placing
    placements = (*placing.placements.values(), placing.default)
    return {each.placement_id: each.preferred_zones for each in placements if each.preferred_zones}


def led_outside(catalog: Catalog, zone_of: Mapping[str, str]) -> int:
    """Returns the number of regions of living tables whose leader stands in none of the preferred
    zones, of those whose placement has some; from the catalog's counts, no table is looked at.
    *zone_of*: the zones of the registered nodes, by id; any other node stands in none."""
    return sum(
        count
        for placement, preferred in preferred_zones(catalog).items()
        for node, count in catalog.led_in(placement).items()
        if zone_of.get(node) not in preferred
    )


def _tables_of(catalog: Catalog, zones: Zones) -> Turns[dict[int, dict[str, HeldRegions]]]:
    """The tables with copies that may be in one of the placements, with their parts of the
    index."""
    tables = yield from copied_tables(catalog)
    if DEFAULT_PLACEMENT_ID in zones:
        return tables
    placed = [catalog.placing.placed_in(number) for number in zones]
    return {
        number: held for number, held in tables.items() if any(number in users for users in placed)
    }


def _switches(catalog: Catalog, table_id: int, facts: ZoneFacts) -> Iterator[SwitchLeader | None]:
    """Yields an item for each region of which a copy is in a better zone than the leader: the
    switch, or None if it may not begin now."""
    for copied in regions_of(catalog, table_id):
        info, region, rules = copied.info, copied.region, copied.rules
        zones = tuple(rules.preferred_zones)
        led_at = facts.rank(region.leader, zones)
        better = [copy for copy in region.copies if facts.rank(copy.node, zones) < led_at]
        if not better or info.is_volatile:
            continue
        able = tuple(
            copy
            for copy in better
            if copy.role is CopyRole.IN_SYNC and facts.may_lead(copy.node, region, rules)
        )
        if not able or region.region_id in facts.busy or not _is_served(region, facts):
            yield None
            continue
        group = catalog.partition_groups(info).get(region.number, {})
        choice = LeaderChoice(preferred_zones=zones)
        views = tuple(facts.views.values())
        chosen = next_leader(region.model_copy(update={"copies": able}), views, choice, group)
        if facts.tried.get(region.region_id) == chosen.node:
            yield None
            continue
        yield SwitchLeader(
            table_id=info.table_id,
            name=info.full_name,
            region_id=region.region_id,
            reason=f"zone {facts.views[chosen.node].zone} is preferred",
            epoch=region.epoch,
            to_node=chosen.node,
        )


def _is_served(region: RegionRoute, facts: ZoneFacts) -> bool:
    """Whether its leader serves it, as far as is known. Otherwise a failover is about to choose."""
    leader = facts.views.get(region.leader)
    if leader is None or not leader.takes_orders or region.unverified or region.borrows:
        return False
    return region.state is RegionState.OPEN and not needs_another(region, (*facts.views.values(),))
