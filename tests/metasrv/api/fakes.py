"""Nodes, jobs and a clock for tests of the HTTP surface: small, and honest about their ports."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from metasrv_base.clock import SystemClock
from metasrv_base.wire.node.adoption import Inventory
from metasrv_base.wire.node.copy_sessions import FetchBody
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    ValidateJob,
    ValidateResult,
)
from metasrv_base.wire.node.orders import Order, OrderError, OrderResult, SetSchema
from procedures.ports import Progress, Sender

HELD_MS = 500


class ShiftedClock(SystemClock):
    """The machine's clock, which tests can move ahead."""

    wall_ahead_ms = 0
    """The error of the wall clock alone."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        self.holds = False
        """Makes sleeps of half a second (`HELD_MS`) or longer never end. Work that would follow
        them is not done, so a slow machine asks the store no more than a fast one."""

    async def sleep_ms(self, ms: int) -> None:
        if self.holds and ms >= HELD_MS:
            await asyncio.get_running_loop().create_future()
        await super().sleep_ms(ms)

    def mono_ms(self) -> int:
        return super().mono_ms() + self.ahead_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self.ahead_ms + self.wall_ahead_ms


@dataclass
class FakeNodes:
    """Every order succeeds at once, unless `gate` is closed or its region is in `failing`."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once any order has come."""
    asked: list[tuple[str, Order]] = field(default_factory=list)
    failing: str | None = None
    """Code of the error that every order is answered with."""

    def __post_init__(self) -> None:
        self.gate.set()

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        self.asked += [(node, order) for order in orders]
        self.reached.set()
        await self.gate.wait()
        error = None if self.failing is None else OrderError(code=self.failing, facts={})
        return tuple(
            OrderResult(
                number=order.number,
                region_id=order.region_id,
                error=error,
                floor_version=1
                if isinstance(order, SetSchema) and order.reserves_version
                else None,
            )
            for order in orders
        )

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        return Borrowed(
            region_id=region_id, epoch=1, root="/r", columns=[], marks=[], files=[], segments=[]
        )

    async def fetched(self, node: str, region_id: str) -> FetchBody | None:
        return None

    async def inventory(self, node: str, region_id: int) -> Inventory:
        return Inventory(node_id=node, cluster_id=None, roots=[], dropped=[], quarantined=[])

    async def snapshot(
        self, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        return Snapshot(
            region_id=region_id, epoch=1, root="/r", columns=[], mark=mark, version=1, files=[]
        )


class NoJobs:
    """There is nothing to move in these tests."""

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        raise AssertionError(job)

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        raise AssertionError(job)

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        raise AssertionError(job)

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        raise AssertionError(job)

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        raise AssertionError(job)

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        raise AssertionError(job_id)
