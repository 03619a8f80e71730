"""The world of a rehearsal: nobody is told anything, and time passes at once."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from keys.model.records import ProcedureOutcome
from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable
from procedures.context import Ports
from procedures.dry_run.dry_run_nodes import StageJobs, StageNodes
from procedures.dry_run.estimates import SizeOf
from procedures.dry_run.notes import Notes
from procedures.dry_run.overlay_store import OverlayStore
from procedures.dry_run.plan import Blocker, Obstacle, Plan
from procedures.ports import (
    Behind,
    ChildEnd,
    Drain,
    Leases,
    NodeView,
    Placement,
    SchemaSync,
)


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
class PlacementAhead:
    """The nodes of now, with the regions that the rehearsal has given to them or taken away."""

    placement: Placement
    draft: OverlayStore

    def nodes(self) -> tuple[NodeView, ...]:
        gained = self.draft.held()
        return tuple(
            replace(node, regions=node.regions + gained[node.node_id])
            for node in self.placement.nodes()
        )

    async def reload(self, node: str) -> None:
        """Does nothing: a draft changes no registration."""


@dataclass(frozen=True)
class SyncAhead:
    """Notes the holders that a wait would be for and ends the wait at once."""

    sync: SchemaSync
    notes: Notes

    def behind(self, table_id: int, schema_version: int | None) -> tuple[Behind, ...]:
        return self.sync.behind(table_id, schema_version)

    def statement_p99_ms(self) -> float | None:
        return self.sync.statement_p99_ms()

    def must_be_sound(self, table_id: int) -> None:
        self.sync.must_be_sound(table_id)

    async def drained(self, table_id: int, schema_version: int | None) -> Drain:
        behind = self.sync.behind(table_id, schema_version)
        if schema_version is not None:
            self.notes.drain(table_id, schema_version, behind)
        return Drain(0)


RehearseChild = Callable[[str, str, dict[str, object]], Awaitable[Plan]]


@dataclass
class StageChildren:
    """A child is rehearsed when it is submitted, in the same draft as its parent."""

    rehearse: RehearseChild
    notes: Notes
    ended: dict[str, Plan] = field(default_factory=dict)

    async def submit(self, procedure: str, kind: str, state: dict[str, object]) -> None:
        self.ended[procedure] = await self.rehearse(procedure, kind, state)

    async def end_of(self, procedure: str) -> ChildEnd | None:
        plan = self.ended.get(procedure)
        return (
            ChildEnd(procedure, ProcedureOutcome.SUCCEEDED, None, {})
            if plan and plan.ends
            else None
        )

    async def under_way(self) -> tuple[str, ...]:
        return tuple(procedure for procedure, plan in self.ended.items() if not plan.ends)

    async def at_most(self, left: int) -> None:
        blocked = await self.under_way()
        if len(blocked) > left:
            self._must_end(blocked[0])

    def _must_end(self, procedure: str) -> None:
        """Raises Unavailable for a child that waits for something: so does its parent."""
        if not self.ended[procedure].ends:
            resource = self.ended[procedure].resource
            self.notes.waits.append(Blocker(Obstacle.CHILD, resource.name))
            raise Unavailable(what="child", name=resource.name)

    async def wait(self, procedures: Sequence[str]) -> tuple[ChildEnd, ...]:
        for procedure in procedures:
            self._must_end(procedure)
        return tuple(ChildEnd(child, ProcedureOutcome.SUCCEEDED, None, {}) for child in procedures)


@dataclass
class DryRunPorts:
    """The ports of one procedure of a rehearsal, and the notes that they make."""

    ports: Ports
    notes: Notes

    @classmethod
    def of(
        cls, real: Ports, draft: OverlayStore, clock: AheadClock, size_of: SizeOf
    ) -> "DryRunPorts":
        notes = Notes()
        ports = Ports(
            kv=draft,
            nodes=StageNodes(real, draft, size_of, notes),
            leases=LeasesAhead(real.leases, clock, notes),
            placement=PlacementAhead(real.placement, draft),
            jobs=StageJobs(size_of, notes),
            schema_sync=SyncAhead(real.schema_sync, notes),
            clock=clock,
            ids=real.ids,
            rng=real.rng,
            term=real.term,
            deadline_ms=real.deadline_ms,
            applied=lambda: draft.applied_to(real.applied()),
            is_busy=real.is_busy,
        )
        return cls(ports, notes)
