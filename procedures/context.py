"""The environment of a step: its ports, its identity, and the waits and progress that it
reports."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from keys.catalog.catalog import Catalog
from keys.catalog.known import known
from keys.commit.txn import Snapshot, snapshot
from keys.key import Key
from keys.model.records import ClientRequirements
from keys.store.kv import ReadableStore
from metasrv_base.clock import Clock
from metasrv_base.ids import Ids
from metasrv_base.rng import Rng
from metasrv_base.values.frozen import frozen
from procedures.elements.reorg_pace import Pace
from procedures.elements.reorg_width import ReorgWidth
from procedures.elements.transition_notes import Passages, TransitionNote, drained
from procedures.pause_gate import PauseGate
from procedures.ports import (
    Children,
    Jobs,
    Leases,
    NodeOrders,
    Placement,
    SchemaSync,
    Sender,
    TransactionLimits,
)

WaitKind: TypeAlias = Literal[
    "child",
    "copy",
    "dropped_table",
    "grace",
    "maintenance",
    "node",
    "region_lease",
    "schema_lease",
    "spark",
    "throttle",
]
"""Waits of a step that runs; docs/operate/procedure-stalled.md names the code that decides each.
One that does not run yet waits for a `lock` (procedures/locking/holding.py) or for `admission`
(procedures/scheduling/admission.py)."""


@frozen
class Waiting:
    """A wait of a step; shown as it is in `waiting_for`."""

    kind: WaitKind
    holder: str
    since_ms: int
    """Wall clock."""
    expires_in_ms: int | None = None
    have: int | None = None
    """Schema version in use, for a wait for a schema lease; this and the following as in
    procedures.ports.Behind."""
    need: int | None = None
    transaction: str | None = None
    transaction_age_ms: int | None = None


@dataclass(slots=True)
class Live:
    """The state of a running procedure that its record does not hold. In memory: lost with the
    term."""

    attempt: int = 1
    """Number of the current attempt of the step in flight."""
    phase: str = ""
    done: int = 0
    total: int = 0
    unit: str = ""
    started_at_ms: int = 0
    """Time at which `done` began to count, wall clock; for rate and ETA."""
    moved_at_ms: int = 0
    """Time at which it last made progress; `stalled` is measured from here."""
    pace: Pace = field(default_factory=Pace)
    """Read rate allowed to its jobs."""
    rate_per_s: float | None = None
    """Rate measured by the step; None: it is computed from `done` and the time since it began."""
    waiting: list[Waiting] = field(default_factory=list)
    waiting_now: Callable[[], tuple[Waiting, ...]] = tuple
    """Waits that are others at every look: who of the holders has not followed yet."""
    last_error: str | None = None
    """Code of the error that the step is being retried for."""
    last_facts: Mapping[str, object] = field(default_factory=dict)
    """And its facts: which region is lost, which node is silent."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to end a rest early."""

    @property
    def waits(self) -> tuple[Waiting, ...]:
        """All that it waits for at this moment."""
        return (*self.waiting, *self.waiting_now())

    async def rest(self, ms: int) -> None:
        """Rests for *ms*, or until it is woken."""
        self.woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(ms / 1000):
                await self.woken.wait()


def _any_may_be(table_id: int) -> bool:
    """Whether a table may be busy, where nobody knows."""
    return True


@dataclass(frozen=True, slots=True)
class Ports:
    """The world of one term, shared by all its procedures."""

    kv: ReadableStore
    nodes: NodeOrders
    leases: Leases
    placement: Placement
    jobs: Jobs
    schema_sync: SchemaSync
    clock: Clock
    ids: Ids
    rng: Rng
    term: int
    deadline_ms: int
    """Deadline of one read of the store."""
    gate: PauseGate = field(default_factory=PauseGate)
    """The gate at which a procedure waits before each step."""
    reorg_width: ReorgWidth = field(default_factory=ReorgWidth)
    limits: TransactionLimits = field(default_factory=TransactionLimits)
    """The size from which a batch happens in parts."""
    applied: Callable[[], Catalog] = Catalog
    """The catalog as this leader has applied it: no older than any commit of its term."""
    is_busy: Callable[[int], bool] = _any_may_be
    """Whether a living procedure claims locks of a table id: it may be making or deleting folders
    of it. All who lock a region lock its route, too."""


@frozen
class Context:
    """The context of one attempt of one step."""

    ports: Ports
    children: Children
    procedure: str
    step: str
    client: ClientRequirements
    """The client's requirements, compared again by the step, under the locks."""
    live: Live
    passages: Passages = field(default_factory=Passages)
    """Schema transitions that the step publishes or drains; stored with the record that
    completes it."""
    wanted_rows_per_s: Callable[[], int | None] = lambda: None
    """Returns the read rate that an operator has set, as of now; None: no operator has set one."""
    has_passed: bool = False
    """Whether the procedure is past its point of no return: a step that raises is run again, until
    it succeeds."""

    @property
    def sender(self) -> Sender:
        return Sender(self.procedure, self.step)

    async def snapshot(self, *keys: Key[Any]) -> Snapshot:
        return await snapshot(self.ports.kv, *keys, deadline_ms=self.ports.deadline_ms)

    async def known_snapshot(self, *keys: Key[Any]) -> Snapshot:
        """Like `snapshot`, without a read of the store if the applied catalog holds all of *keys*.

        For a step that compares every one of *keys* in its transaction. An attempt after the first
        reads: what was taken from the catalog may be why the first one failed.
        """
        applied = known(self.ports.applied(), *keys) if self.live.attempt == 1 else None
        return await self.snapshot(*keys) if applied is None else applied

    def alive_nodes(self) -> frozenset[str]:
        """Ids, as placement has it at this moment."""
        return frozenset(node.node_id for node in self.ports.placement.nodes() if node.alive)

    def answering_nodes(self) -> frozenset[str]:
        """Ids of living nodes, without those that have answered no orders for a while."""
        nodes = self.ports.placement.nodes()
        return frozenset(node.node_id for node in nodes if node.takes_orders)

    def progress(self, done: int, total: int, unit: str) -> None:
        now = self.ports.clock.wall_ms()
        if self.live.phase != self.step:
            self.live.phase, self.live.started_at_ms = self.step, now
            self.live.rate_per_s = None
        if done != self.live.done:
            self.live.moved_at_ms = now
        self.live.done, self.live.total, self.live.unit = done, total, unit

    async def drained(self, table_id: int, schema_version: int | None) -> None:
        """Waits as SchemaSync.drained, and shows who is waited for; noted for the history."""
        sync, clock = self.ports.schema_sync, self.ports.clock
        since_ms = clock.wall_ms()

        def waits() -> tuple[Waiting, ...]:
            return tuple(
                Waiting(
                    "schema_lease",
                    lease.holder,
                    since_ms,
                    expires_in_ms=lease.expires_in_ms,
                    have=lease.have,
                    need=lease.need,
                    transaction=lease.transaction,
                    transaction_age_ms=lease.transaction_age_ms,
                )
                for lease in sync.behind(table_id, schema_version)
            )

        self.live.waiting_now = waits
        try:
            drain = await sync.drained(table_id, schema_version)
        finally:
            self.live.waiting_now = tuple
        if schema_version is not None:
            self.note(drained(table_id, schema_version, drain, clock.wall_ms()))

    def note(self, passage: TransitionNote) -> None:
        self.passages.note(passage)

    @contextmanager
    def waiting_for(
        self, kind: WaitKind, holder: str, expires_in_ms: int | None = None
    ) -> Iterator[None]:
        """Shows, while inside, what this step waits for."""
        wait = Waiting(kind, holder, self.ports.clock.wall_ms(), expires_in_ms)
        self.live.waiting.append(wait)
        try:
            yield
        finally:
            self.live.waiting.remove(wait)
