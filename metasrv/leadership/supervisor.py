"""Failover by detection: which dead nodes are failed over now, and what holds the others back.

Pure decision, thin loop. Nothing happens during the grace after an election, in maintenance, or
while so many nodes look dead that the fault is more likely ours (G33, G35, G40).
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import structlog

from keys.catalog.follower import Follower
from keys.model.records import ClientRequirements as Client
from metasrv.leadership.lost_regions import failing_leaders, lost_regions
from metasrv.nodes.guard import guard
from metasrv.nodes.node_liveness import NodeLiveness
from metasrv.nodes.status import GONE, HeldBack, Hold, NodeState, NodeStatus
from metasrv.settings.settings import SettingsStore
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from metasrv_base.ids import Ids
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.kinds.failover.lose_regions import LOSE_REGIONS, LoseRegions
from procedures.scheduling.manager import Manager

TICK_MS = 500
AGAIN_MS = 10_000  # between two failovers of one node: the first may have left tables on it

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Decision:
    """Nodes to fail over now; and those that are held back."""

    start: tuple[str, ...]
    held: tuple[str, ...] = ()
    hold: Hold | None = None
    """Why."""


def decide(
    statuses: Collection[NodeStatus],
    leading: Collection[str],
    under_way: Collection[str],
    hold: Hold | None,
) -> Decision:
    """Returns the nodes whose failover begins now, and those whose failover is held back.

    *leading* are nodes that lead a region; *hold* is a reason that holds for all of them. A node
    that is not adopted yet is left out: nobody knows what its regions are.
    """
    statuses = [status for status in statuses if status.node.restored_from is None]
    dead = [status.node.node_id for status in statuses if status.state in GONE]
    due = tuple(node for node in dead if node in leading and node not in under_way)
    hold = hold or guard(statuses, leading)
    return Decision(due) if hold is None else Decision((), due, hold)


@dataclass(slots=True)
class Supervisor:
    """The loop of one term."""

    clock: Clock
    ids: Ids
    follower: Follower
    book: NodeLiveness
    settings: SettingsStore
    manager: Manager
    _held: Mapping[str, HeldBack] = field(default_factory=dict)
    _states: Mapping[str, NodeState] = field(default_factory=dict)
    """States of the nodes at the last look, by node id."""
    _submitting: set[str] = field(default_factory=set)
    """Nodes whose failover is on its way to the store."""
    _begun: dict[str, int] = field(default_factory=dict)
    """Node -> when its last failover was submitted, monotonic ms."""
    _told_lost: dict[int, int] = field(default_factory=dict)
    """Table id -> when regions of it were last said to be lost, monotonic ms."""
    _looks: int = 0
    """Looks at what living nodes do not serve."""
    _begun_tables: dict[tuple[int, str], int] = field(default_factory=dict)
    """Table id and node -> when leaders that live and do not serve were last replaced there,
    monotonic ms."""

    async def run(self) -> None:
        """Submits beside its own loop: a store that is slow or full delays neither the next look
        nor the failover of the next node, and is never taken for a stall of this server."""
        last = self.clock.mono_ms()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self.clock.sleep_ms(TICK_MS)
                now = self.clock.mono_ms()
                stalled = now - last - TICK_MS
                if stalled > TICK_MS:  # this process, not the nodes, was away
                    self.book.forgive(stalled)
                    log.warning("server_stalled", stalled_ms=stalled)
                last = now
                for node in self._look(now):
                    self._submitting.add(node)
                    tasks.create_task(self._start(node))
                self._looks += 1
                for lost in self._lost(now):
                    self._told_lost[lost.table_id] = now
                    tasks.create_task(self._tell_lost(lost))
                for moving in self._failing(now):
                    self._begun_tables[moving.table_id, moving.source] = now
                    tasks.create_task(self._move(moving))

    def _look(self, now: int) -> tuple[str, ...]:
        """Nodes to fail over."""
        catalog, statuses = self.follower.catalog, self.book.statuses()
        self._note(statuses)
        decision = decide(
            statuses,
            {node for node, count in catalog.led.items() if count},
            self._under_way(now),
            self._hold(now),
        )
        self._tell(decision)
        return decision.start

    def _lost(self, now: int) -> tuple[LoseRegions, ...]:
        """Regions whose rows ended with a process, and that the route does not call lost yet."""
        self._told_lost = {
            table: at_ms for table, at_ms in self._told_lost.items() if at_ms > now - AGAIN_MS
        }
        statuses, catalog = self.book.statuses(), self.follower.catalog
        return lost_regions(statuses, catalog, self._told_lost, self._looks)

    def _failing(self, now: int) -> tuple[FailoverTable, ...]:
        """Regions whose leaders have started again, or have lost their files: they serve nothing
        until another one leads, so neither maintenance nor the grace after an election holds this
        back. A failover of the same regions that is not over yet does; one of other regions of the
        table may be under way for as long as their files are lost."""
        self._begun_tables = {
            key: at_ms for key, at_ms in self._begun_tables.items() if at_ms > now - AGAIN_MS
        }
        due = failing_leaders(
            self.book.statuses(), self.follower.catalog, self._begun_tables.keys(), self._looks
        )
        moving = self._moving() if due else set[str]()
        rest = (each.without(moving) for each in due)
        return tuple(each for each in rest if each.region_ids)

    def _moving(self) -> set[str]:
        """Ids of the regions of living failovers of tables."""
        records = (entry.held.record for _, entry in self.manager.living())
        moves = (record.state for record in records if record.kind == FAILOVER_TABLE.name)
        return {region_id for state in moves for region_id in state["region_ids"]}

    async def _move(self, state: FailoverTable) -> None:
        statement = {"automatic": "failover", "node": state.source}
        client = Client(submitted_by="metasrv", request_id="", statement=statement)
        request = SubmitRequest(self.ids.procedure_id(), client, fingerprint="")
        try:
            await self.manager.submit(FAILOVER_TABLE, state, request)
        except MetaError as error:
            facts = {"node": state.source, "table": state.name}
            log.warning("failover_not_submitted", error=error.code, **facts)

    async def _tell_lost(self, state: LoseRegions) -> None:
        client = Client(
            submitted_by="metasrv",
            request_id="",
            statement={"automatic": "lose_regions", "node": state.node},
        )
        request = SubmitRequest(self.ids.procedure_id(), client, fingerprint="")
        facts = {"table": state.name, "node": state.node, "regions": sorted(state.epochs)}
        try:
            await self.manager.submit(LOSE_REGIONS, state, request)
        except MetaError as error:
            log.warning("lost_regions_not_submitted", error=error.code, **facts)
        else:
            log.warning("memory_regions_lost", **facts)

    def _note(self, statuses: Collection[NodeStatus]) -> None:
        states = {status.node.node_id: status.state for status in statuses}
        for node, state in states.items():
            before = self._states.get(node, NodeState.ALIVE)
            if state is not before:
                log.info("node_state_changed", node=node, before=before.value, state=state.value)
        self._states = states

    def _tell(self, decision: Decision) -> None:
        hold, now_ms = decision.hold, self.clock.wall_ms()
        held: dict[str, HeldBack] = {}
        for node in decision.held:
            assert hold is not None
            before = self._held.get(node)
            held[node] = HeldBack(hold, now_ms if before is None else before.since_ms)
            if before is None or before.hold.reason != hold.reason:
                log.warning("failover_held_back", node=node, reason=hold.reason, ends=hold.ends)
        self._held = self.book.held = held

    def _hold(self, now: int) -> Hold | None:
        quiet_ms = self.book.leases.quiet_until_ms - now
        if quiet_ms > 0:
            until_ms = self.clock.wall_ms() + quiet_ms
            return Hold("grace after the election", "leases of before are over", until_ms)
        maintenance = self.settings.maintenance
        if maintenance is not None:
            return Hold("maintenance", "it is switched off", maintenance.expires_at_ms)
        return None

    def _under_way(self, now: int) -> set[str]:
        moving = self._resources_of(FAILOVER_NODE.name)
        self._begun = {
            node: until_ms for node, until_ms in self._begun.items() if until_ms > now - AGAIN_MS
        }
        return moving | self._submitting | self._begun.keys()

    async def _start(self, node: str) -> None:
        client = Client(
            submitted_by="metasrv", request_id="", statement={"automatic": "failover", "node": node}
        )
        state = FailoverNode(node=node, reason="no heartbeat")
        procedure = self.ids.procedure_id()
        try:
            request = SubmitRequest(procedure, client, fingerprint="")
            await self.manager.submit(FAILOVER_NODE, state, request)
        except MetaError as error:
            log.warning("failover_not_submitted", node=node, error=error.code)
        else:
            self._begun[node] = self.clock.mono_ms()
            log.warning("failover_started", node=node, procedure=procedure)
        finally:
            self._submitting.discard(node)

    def _resources_of(self, kind: str) -> set[str]:
        """Ids of what living procedures of *kind* work on."""
        records = (entry.held.record for _, entry in self.manager.living())
        return {record.resource.id for record in records if record.kind == kind}
