"""Failover by detection: which dead nodes are failed over now, and what holds the others back.

Pure decision, thin loop. Nothing happens during the grace after an election, in maintenance, or
when so many nodes look dead that the fault is more likely ours (G33, G35, G40).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import structlog

from base.clock import Clock
from base.errors import MetaError
from base.ids import Ids
from keys.follower import Follower
from keys.records import Submission as Client
from metasrv.nodes.book import NodeBook
from metasrv.nodes.status import NodeState, NodeStatus, too_many_dead
from metasrv.settings import Settings
from procedures.kinds.failover_node import FAILOVER_NODE, FailoverNode
from procedures.manager import Manager
from procedures.submit import Submission

TICK_MS = 500

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Decision:
    """Nodes to fail over now; and, by node, why a dead one is left alone."""

    start: tuple[str, ...]
    held: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Budget:
    """Failovers of one window (G35)."""

    begun: int
    share_max: float
    """Of all nodes; at least one node."""

    def left(self, nodes: int) -> int:
        return max(0, max(1, int(self.share_max * nodes)) - self.begun)


def decide(
    statuses: Collection[NodeStatus],
    with_regions: Collection[str],
    under_way: Collection[str],
    budget: Budget,
    hold: str | None,
) -> Decision:
    """*hold*: a reason that holds for all of them."""
    dead = [status.node.node_id for status in statuses if status.state is NodeState.DEAD]
    wanted = [node for node in dead if node in with_regions and node not in under_way]
    if hold is None and too_many_dead(len(dead), len(statuses)):
        hold = f"{len(dead)} of {len(statuses)} nodes look dead: is it this server?"
    if hold is not None:
        return Decision((), dict.fromkeys(wanted, hold))
    left = budget.left(len(statuses))
    late = f"{budget.begun} failovers in this window already"
    return Decision(tuple(wanted[:left]), dict.fromkeys(wanted[left:], late))


@dataclass(slots=True)
class Supervisor:
    """The loop of one term."""

    clock: Clock
    ids: Ids
    follower: Follower
    book: NodeBook
    settings: Settings
    manager: Manager
    held: Mapping[str, str] = field(default_factory=dict)
    """Dead nodes that are left alone, and why; for people."""
    _begun: list[int] = field(default_factory=list)

    async def run(self) -> None:
        last = self.clock.mono_ms()
        while True:
            await self.clock.sleep_ms(TICK_MS)
            now = self.clock.mono_ms()
            stalled = now - last - TICK_MS
            if stalled > TICK_MS:  # this process, not the nodes, was away
                self.book.forgive(stalled)
                log.warning("server_stalled", stalled_ms=stalled)
            last = now
            await self._look(now)

    async def _look(self, now: int) -> None:
        tuned = self.settings.values
        self._begun = [at for at in self._begun if at > now - tuned.failover_window_ms]
        catalog = self.follower.catalog
        decision = decide(
            self.book.statuses(),
            [node for node in catalog.nodes if catalog.nodes[node]],
            self._under_way(),
            Budget(len(self._begun), tuned.failover_share_max),
            self._hold(now),
        )
        for node, reason in decision.held.items():
            if self.held.get(node) != reason:
                log.warning("failover_held_back", node=node, reason=reason)
        self.held = decision.held
        for node in decision.start:
            await self._start(node, now)

    def _hold(self, now: int) -> str | None:
        if now < self.book.leases.quiet_until_ms:
            return "grace after the election"
        if self.settings.maintenance is not None:
            return "maintenance"
        return None

    def _under_way(self) -> set[str]:
        records = (entry.held.record for _, entry in self.manager.living())
        return {r.resource.id for r in records if r.kind == FAILOVER_NODE.name}

    async def _start(self, node: str, now: int) -> None:
        client = Client(
            submitted_by="metasrv", request_id="", statement={"automatic": "failover", "node": node}
        )
        state = FailoverNode(node=node, reason="no heartbeat")
        procedure = self.ids.procedure_id()
        try:
            wish = Submission(procedure, client, fingerprint="")
            await self.manager.submit(FAILOVER_NODE, state, wish)
        except MetaError as error:
            log.warning("failover_not_submitted", node=node, error=error.code)
            return
        self._begun.append(now)
        log.warning("failover_started", node=node, procedure=procedure)
