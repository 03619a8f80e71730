"""A leader with gates to open, and clients that submit, wait and cancel."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from structlog.testing import capture_logs

from keys.model.records import ClientRequirements, ProcedureHistory
from keys.store.kv import Compare, Kv
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command, Control, State
from procedures.engine.submit import SubmitRequest, Submitted
from procedures.machine import AdmissionLane
from procedures.scheduling.admission import Limits
from tests.fakes.cluster import LIMITS, Cluster
from tests.fakes.term import Server
from tests.procedures.harness.gates import Gate, Gates
from tests.procedures.harness.scenarios import with_two_tables_and_dead_node
from tests.sim.loop import SimLoop, run

SMALL = Limits(running_max={AdmissionLane.DDL: 2, AdmissionLane.REPAIR: 1}, queue_max=3)


OPERATOR = ClientRequirements(
    submitted_by="ops", request_id="r", statement={}, idempotency="e" * 64
)


@dataclass
class Office:
    """A cluster with one leader, and clients."""

    cluster: Cluster
    server: Server
    fence: Compare
    gates: Gates
    logs: Sequence[Mapping[str, object]] = ()
    """Lines that the servers have logged."""
    names: dict[str, str] = field(default_factory=dict)
    """Name of a gate -> its procedure."""

    async def submit(
        self, name: str, *locks: str, key: str | None = None, body: str = "b"
    ) -> Submitted:
        client = ClientRequirements(
            submitted_by="anna", request_id="r", statement={}, idempotency=key and key * 64
        )
        request = SubmitRequest(self.cluster.ids.procedure_id(), client, body)
        kind, state = self.cluster.kinds["gate"], Gate(name=name, locks=locks)
        manager = self.cluster.leader.manager
        submitted = await manager.submit(kind, state, request)
        self.names.setdefault(name, submitted.procedure)
        return submitted

    async def control(
        self, control: Control, name: str, percent: int = 0
    ) -> ActiveProcedure | ProcedureHistory:
        command = Command(control, by="ops", reason="because", percent=percent)
        return await self.cluster.leader.manager.control(self.names[name], command)

    async def cancel(self, name: str) -> ActiveProcedure | ProcedureHistory:
        return await self.control(Control.CANCEL, name)

    async def at_once(self, *wanted: tuple[str, ...]) -> None:
        """Each is a name and its locks."""
        await asyncio.gather(*(self.submit(*one) for one in wanted))

    async def settle(self) -> None:
        await self.cluster.clock.sleep_ms(50)

    def state(self, name: str) -> State:
        found = dict(self.cluster.leader.manager.living())[self.names[name]]
        return found.state

    def states(self, *names: str) -> list[State]:
        return [self.state(name) for name in names]

    async def end(self, name: str) -> ProcedureHistory:
        found = await self.cluster.leader.manager.wait(self.names[name], deadline_ms=60_000)
        assert isinstance(found, ProcedureHistory), found.state
        return found

    def let(self, *names: str) -> None:
        for name in names:
            self.gates.gate(name).set()

    async def next_leader(self) -> Server:
        self.cluster.loop.kill(self.cluster.leader.node)
        return await self.cluster.started("meta-2")


def office(
    scenario: Callable[[Office], Awaitable[None]],
    limits: Limits = LIMITS,
    client: Callable[[Kv], Kv] = lambda kv: kv,
) -> None:
    """*client*: between every server and the store."""

    async def main(loop: SimLoop) -> None:
        gates = Gates()
        cluster = Cluster(loop, gates.kinds(), limits, client=client)
        fence = await cluster.bootstrap()
        await with_two_tables_and_dead_node(cluster, fence)
        server = await cluster.started()
        await scenario(Office(cluster, server, fence, gates, logs))

    with capture_logs() as logs:
        run(main, 1)
