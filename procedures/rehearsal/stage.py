"""The world of a rehearsal: every order is noted and taken for done, and time passes at once."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from base.clock import Clock
from base.errors import Unavailable
from base.wire.inputs import Borrowed, SealedSegment
from base.wire.jobs import MoveJob, MoveResult
from base.wire.orders import OpenRegion, Order, OrderError, OrderResult
from keys.records import Outcome
from keys.tables import RegionState, TableRouteKey
from keys.txn import snapshot
from procedures.context import Ports
from procedures.ports import Behind, ChildEnd, Drain, Leases, Progress, SchemaSync, Sender
from procedures.rehearsal.draft import Draft
from procedures.rehearsal.plan import Blocker, Obstacle, Plan, PlannedOrder

NO_CHECKSUM = "0" * 8


@dataclass
class Notes:
    """What the step in flight has done so far."""

    orders: list[PlannedOrder] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    waits: list[Blocker] = field(default_factory=list)

    def clear(self) -> "Notes":
        """For the next step."""
        self.orders, self.jobs, self.waits = [], [], []
        return self


@dataclass
class AheadClock:
    """Sleeping moves it at once."""

    clock: Clock
    ahead_ms: int = 0

    def wall_ms(self) -> int:
        return self.clock.wall_ms() + self.ahead_ms

    def mono_ms(self) -> int:
        return self.clock.mono_ms() + self.ahead_ms

    async def sleep_ms(self, ms: int) -> None:
        self.ahead_ms += ms


@dataclass(frozen=True)
class LeasesAhead:
    """The leases of now, as they will be when the rehearsal has slept for them."""

    leases: Leases
    clock: AheadClock
    notes: Notes

    def free_in_ms(self, node: str, region_ids: Sequence[str]) -> int:
        left_ms = self.leases.free_in_ms(node, region_ids) - self.clock.ahead_ms
        if left_ms <= 0:
            return 0
        self.notes.waits.append(Blocker(Obstacle.LEASE, node, expires_in_ms=left_ms))
        return left_ms


@dataclass(frozen=True)
class SyncAhead:
    """Who would be waited for is noted; the wait is over at once."""

    sync: SchemaSync
    notes: Notes

    def behind(self, table_id: int, schema_version: int) -> tuple[Behind, ...]:
        return self.sync.behind(table_id, schema_version)

    async def drained(self, table_id: int, schema_version: int) -> Drain:
        self.notes.waits += [
            Blocker(Obstacle.SCHEMA_LEASE, one.holder, expires_in_ms=one.expires_in_ms)
            for one in self.sync.behind(table_id, schema_version)
            if one.transaction is not None or one.have is None
        ]
        return Drain(0)


@dataclass(frozen=True)
class StageNodes:
    """A living node does what it is told; a dead one is waited for; what is lost stays lost."""

    ports: Ports
    """The real ones: asked, never told."""
    notes: Notes

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        if not any(one.node_id == node and one.alive for one in self.ports.placement.nodes()):
            self.notes.waits.append(Blocker(Obstacle.NODE, node))
            raise Unavailable(what="node", name=node)
        self.notes.orders += [PlannedOrder(node, one.op, one.region_id) for one in orders]
        return tuple([await self._result(order) for order in orders])

    async def _result(self, order: Order) -> OrderResult:
        error = None
        if isinstance(order, OpenRegion) and await self._is_lost(order):
            self.notes.waits.append(Blocker(Obstacle.REGION, order.region_id))
            error = OrderError(code="region-lost", facts={"region_id": order.region_id})
        return OrderResult(number=order.number, region_id=order.region_id, error=error)

    async def _is_lost(self, order: OpenRegion) -> bool:
        key = TableRouteKey(order.table_id)
        seen = await snapshot(self.ports.kv, key, deadline_ms=self.ports.deadline_ms)
        route = seen.get(key)
        return route is not None and any(
            region.state is RegionState.LOST
            for region in route.region_routes
            if region.region_id == order.region_id
        )

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        """Something: what is there nobody knows before the region is open."""
        something = SealedSegment(root="", name="", bytes=0, checksum=NO_CHECKSUM)
        return Borrowed(
            region_id=region_id,
            epoch=1,
            root="",
            columns=[],
            marks=[],
            files=[],
            segments=[something],
        )


@dataclass(frozen=True)
class StageJobs:
    notes: Notes

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        self.notes.jobs.append(job.borrowed.region_id)
        return MoveResult(
            job_id=job.job_id,
            files=[],
            rows_in=0,
            rows_out=0,
            bytes_in=0,
            bytes_out=0,
            copied_files=0,
            rewritten_segments=0,
        )


RehearseChild = Callable[[str, str, dict[str, object]], Awaitable[Plan]]


@dataclass
class StageChildren:
    """A child is rehearsed when it is submitted, in the same draft as its parent."""

    rehearse: RehearseChild
    notes: Notes
    ended: dict[str, Plan] = field(default_factory=dict)

    async def submit(self, procedure: str, kind: str, state: dict[str, object]) -> None:
        self.ended[procedure] = await self.rehearse(procedure, kind, state)

    async def exists(self, procedure: str) -> bool:
        return procedure in self.ended

    async def wait(self, procedures: Sequence[str]) -> tuple[ChildEnd, ...]:
        for procedure in procedures:
            if not self.ended[procedure].ends:
                resource = self.ended[procedure].resource
                self.notes.waits.append(Blocker(Obstacle.CHILD, resource.name))
                raise Unavailable(what="child", name=resource.name)
        return tuple(ChildEnd(one, Outcome.SUCCEEDED, None, {}) for one in procedures)


@dataclass
class Stage:
    """The ports of one procedure of a rehearsal, and the notes that they make."""

    ports: Ports
    notes: Notes

    @classmethod
    def of(cls, real: Ports, draft: Draft, clock: AheadClock) -> "Stage":
        notes = Notes()
        ports = Ports(
            kv=draft,
            nodes=StageNodes(real, notes),
            leases=LeasesAhead(real.leases, clock, notes),
            placement=real.placement,
            jobs=StageJobs(notes),
            schema_sync=SyncAhead(real.schema_sync, notes),
            clock=clock,
            ids=real.ids,
            rng=real.rng,
            term=real.term,
            deadline_ms=real.deadline_ms,
        )
        return cls(ports, notes)
