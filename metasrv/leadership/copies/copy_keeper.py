"""Makes lost copies again, removes those that are too many, and has leaders follow the preferred
zones of their placements: the loop of one term.

Nothing happens during the grace after an election, in maintenance, or while so many nodes look dead
that the fault is more likely ours.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import structlog

from keys.catalog.catalog import Catalog
from keys.model.records import ClientRequirements as Client
from metasrv.leadership.copies.copy_plan import CopyNodes, CopyWork, Need, plan_copies
from metasrv.leadership.copies.copy_survey import ABSENT_MS, LOST_MS, CopySurveyor
from metasrv.leadership.copies.placement_followers import PlacementFollowers
from metasrv.leadership.copies.zone_followers import (
    SWITCHES_MAX,
    ZoneFacts,
    ZoneFollowers,
    preferred_zones,
)
from metasrv.leadership.term import Term
from metasrv.nodes.guard import guard
from metasrv.nodes.status import GONE, NodeState, NodeStatus
from metasrv_base.clock import Clock
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.errors import MetaError
from metasrv_base.ids import Ids
from procedures.engine.submit import SubmitRequest
from procedures.kinds.alter.alter_table import ALTER_TABLE
from procedures.kinds.copies.add_copy import ADD_COPY, AddCopy
from procedures.kinds.copies.remove_copy import REMOVE_COPY
from procedures.kinds.failover.change_copies import CHANGE_COPIES
from procedures.kinds.failover.decommission_node import DECOMMISSION_NODE
from procedures.kinds.failover.failover_node import FAILOVER_NODE
from procedures.kinds.failover.failover_table import FAILOVER_TABLE
from procedures.kinds.failover.switch_leader import SWITCH_LEADER
from procedures.kinds.moves.drain_node import DRAIN_NODE
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.machine import Kind, ProcedureState
from procedures.ports import NodeView
from procedures.steps.copies.neighbours import Neighbours

EVERY_MS = 10_000
SOON_MS = 500
"""The pause while copies are on their way: the next ones begin soon after some have joined."""
REST_TIMES = 9  # a look takes at most a tenth of the time
AGAIN_MS = 120_000  # until a region that has not changed gets another procedure
EMPTYING = DRAIN_NODE, DECOMMISSION_NODE, FAILOVER_NODE
"""Kinds of procedures that take the regions of a node from it."""

log = structlog.get_logger()


class SubmittedChange(NamedTuple):
    """A procedure that was submitted for a region."""

    at_ms: int
    """Monotonic."""
    version: int
    """The version of the copies then: another one tells that it was done."""


class SubmittedSwitch(NamedTuple):
    """A switch that was submitted for a region."""

    at_ms: int
    """Monotonic."""
    to_node: str


@dataclass(slots=True)
class CopyKeeper:
    term: Term
    clock: Clock
    ids: Ids
    _surveyor: CopySurveyor = field(default_factory=CopySurveyor)
    _begun: dict[str, SubmittedChange] = field(default_factory=dict)
    """Region id -> its last procedure."""
    _followers: PlacementFollowers = field(default_factory=PlacementFollowers)
    _altered: dict[int, int] = field(default_factory=dict)
    """Table id -> when its last alter was submitted, monotonic ms."""
    _zones: ZoneFollowers = field(default_factory=ZoneFollowers)
    _switched: dict[str, SubmittedSwitch] = field(default_factory=dict)
    """Region id -> its last switch."""
    is_busy: bool = False
    """Whether the last look has found copies on their way, or has begun some."""

    async def run(self) -> None:
        """Begins once every record has been read: whatever is under way is known then."""
        await self.term.ready.wait()
        took_ms = 0
        while True:
            await self.clock.sleep_ms(pause_ms(took_ms, is_busy=self.is_busy))
            began_ms = self.clock.mono_ms()
            await self.look()
            took_ms = self.clock.mono_ms() - began_ms

    async def look(self) -> None:
        """Counts what is at risk, and submits what is due. What the store does not take is due
        again at the next look."""
        now = self.clock.mono_ms()
        statuses, catalog = self.term.nodes.statuses(), self.term.nodes.follower.catalog
        views = {view.node_id: view for view in self.term.ports.placement.nodes()}
        offline = [s.node.node_id for s in statuses if s.state is NodeState.OFFLINE]
        safe_lost_ms = self.term.settings.values.safe_lost_time_ms
        nodes = CopyNodes(views, offline, safe_lost_time_ms=safe_lost_ms)
        reports = {status.node.node_id: status for status in statuses}

        def lacks(node: str, region_id: str) -> int | None:
            status = reports.get(node)
            is_heard = status is not None and status.heard_ms_ago is not None
            if status is None or not is_heard or status.state in GONE:
                return None
            if region_id in status.lost:
                return LOST_MS
            return None if region_id in status.regions else ABSENT_MS

        await self._follow_placements(catalog, now)
        survey = await by_turns(self._surveyor.look(catalog, nodes, lacks, now))
        self.term.copy_risk.take(survey.risk)
        self.is_busy = False
        if not _may_begin(self.term, statuses, catalog, now):
            return
        self._begun = {
            region: begun for region, begun in self._begun.items() if begun.at_ms > now - AGAIN_MS
        }
        busy, moving = {*_under_way(self.term)}, {*_moving(self.term)}
        needs = [
            need
            for need in survey.needs
            if not self._is_to_wait(need, busy) and not _is_of_move(need, moving, nodes)
        ]
        versions = {
            need.copied.region.region_id: need.copied.region.copies_version for need in needs
        }
        planned = plan_copies(needs, survey.nodes, Neighbours(catalog.copy_groups))
        for work in planned:
            await self._submit(work, versions[work.region_id])
        begun = {work.region_id for work in planned}
        switched = await self._follow_zones(catalog, views, {*busy, *moving, *begun})
        learning = [node for node in survey.nodes.learners if not nodes.is_lost(node)]
        self.is_busy = bool(planned or busy or learning or switched)

    async def _follow_placements(self, catalog: Catalog, now_ms: int) -> None:
        """Alters tables whose placement has other numbers of copies by now. Those that are being
        altered wait: their turn comes after it."""
        self._altered = {
            table: at_ms for table, at_ms in self._altered.items() if at_ms > now_ms - AGAIN_MS
        }
        due = await by_turns(self._followers.look(catalog))
        altering = {
            entry.held.record.state["table_id"]
            for _, entry in self.term.manager.living()
            if entry.held.record.kind == ALTER_TABLE.name
        }
        for alter in due:
            if alter.table_id not in altering and alter.table_id not in self._altered:
                self._altered[alter.table_id] = now_ms
                facts = {"table": f"{alter.catalog}.{alter.schema_name}.{alter.name}"}
                await self._begin(ALTER_TABLE, alter, "its placement has other numbers", facts)

    async def _follow_zones(
        self, catalog: Catalog, views: Mapping[str, NodeView], busy: Collection[str]
    ) -> int:
        """Submits switches of leaders to copies in better zones, a few at once; returns how many.
        The leader of a region is not switched to the same node again within AGAIN_MS: neither
        where the switch failed, nor where the new leader did soon afterwards."""
        room = SWITCHES_MAX - sum(1 for _ in _living(self.term, SWITCH_LEADER))
        if room <= 0 or not preferred_zones(catalog):
            return 0
        now = self.clock.mono_ms()
        self._switched = {
            region: last for region, last in self._switched.items() if last.at_ms > now - AGAIN_MS
        }
        tried = {region: last.to_node for region, last in self._switched.items()}
        leaving = {str(state["node"]) for state in _living(self.term, *EMPTYING)}
        facts = ZoneFacts(views, leaving, busy, tried)
        due = await by_turns(self._zones.look(catalog, facts, room))
        for switch in due:
            node = str(switch.to_node)
            self._switched[switch.region_id] = SubmittedSwitch(now, node)
            details = {"region_id": switch.region_id, "node": node}
            await self._begin(SWITCH_LEADER, switch, switch.reason, details)
        return len(due)

    def _is_to_wait(self, need: Need, busy: Collection[str]) -> bool:
        """Whether the region's last procedure may not have done anything yet. A learner that its
        node does not have waits for reports of the last one."""
        region = need.copied.region
        begun = self._begun.get(region.region_id)
        if region.region_id in busy:
            return True
        if begun is None:
            return False
        if need.unmade is not None:
            is_early = self.clock.mono_ms() - begun.at_ms < LOST_MS
            if is_early or not need.missing:
                return is_early
        return begun.version == region.copies_version

    async def _submit(self, work: CopyWork, version: int) -> None:
        kind = ADD_COPY if isinstance(work, AddCopy) else REMOVE_COPY
        facts = {"region_id": work.region_id, "node": work.node}
        self._begun[work.region_id] = SubmittedChange(self.clock.mono_ms(), version)
        await self._begin(kind, work, work.reason, facts)

    async def _begin(
        self, kind: Kind[Any], state: ProcedureState, reason: str, facts: dict[str, str]
    ) -> None:
        statement = {"automatic": kind.name, "reason": reason}
        client = Client(submitted_by="metasrv", request_id="", statement=statement)
        request = SubmitRequest(self.ids.procedure_id(), client, fingerprint="")
        details = {**facts, "kind": kind.name, "reason": reason}
        try:
            await self.term.manager.submit(kind, state, request)
        except MetaError as error:
            log.info("copy_change_not_submitted", error=error.code, **details)
        else:
            log.info("copy_change_submitted", **details)


def pause_ms(took_ms: int, *, is_busy: bool) -> int:
    """The pause, in ms, after a look that took that long."""
    return min(EVERY_MS, max(SOON_MS, REST_TIMES * took_ms)) if is_busy else EVERY_MS


def _may_begin(term: Term, statuses: Collection[NodeStatus], catalog: Catalog, now_ms: int) -> bool:
    """Nodes that are dead and hold a copy count, whether they lead or not."""
    if now_ms < term.nodes.leases.quiet_until_ms or term.settings.maintenance is not None:
        return False
    holding = {s.node.node_id for s in statuses if catalog.held_by(s.node.node_id)}
    return guard(statuses, holding) is None


def _living(term: Term, *kinds: Kind[Any]) -> Iterator[Mapping[str, Any]]:
    """States of the living procedures of these kinds."""
    names = {kind.name for kind in kinds}
    for _, entry in term.manager.living():
        if entry.held.record.kind in names:
            yield entry.held.record.state


def _moving(term: Term) -> Iterator[str]:
    """Ids of the regions of which a living procedure moves a copy."""
    for state in _living(term, MOVE_COPY):
        yield str(state["region_id"])


def _is_of_move(need: Need, moving: Collection[str], nodes: CopyNodes) -> bool:
    """Whether the region has one copy too many because one is moved. A copy whose disk is lost goes
    all the same, or a move that waits for it would wait for ever."""
    if need.surplus is None or need.copied.region.region_id not in moving:
        return False
    return not nodes.is_lost(need.surplus.node)


def _under_way(term: Term) -> Iterator[str]:
    """Ids of the regions whose copies, or leaders, a living procedure changes."""
    changing = {kind.name for kind in (ADD_COPY, REMOVE_COPY, CHANGE_COPIES, SWITCH_LEADER)}
    for _, entry in term.manager.living():
        record = entry.held.record
        if record.kind in changing:
            yield str(record.state["region_id"])
        elif record.kind == FAILOVER_TABLE.name:
            yield from record.state["region_ids"]
