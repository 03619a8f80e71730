"""What a dying server sends last does not arrive: it is left with the test, which sends it later.

Each port hands all that it sends to a `Post` first, which returns unless the server dies there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from base.wire.inputs import Borrowed, Snapshot
from base.wire.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    LoadJob,
    LoadResult,
    MoveJob,
    MoveResult,
    ValidateJob,
    ValidateResult,
)
from base.wire.orders import Order, OrderResult
from keys.kv import Answer, Kv, Request
from procedures.ports import Jobs, Progress, Sender
from tests.procedures.killed.plane_file import FileJobs, FileNodes, PlaneFile
from tests.procedures.planted import Client

Post = Callable[..., None]


@dataclass
class PostingKv(Client):
    post: Post

    async def txn(self, request: Request, *, deadline_ms: int) -> Answer:
        self.post("txn", request, deadline_ms)
        return await super().txn(request, deadline_ms=deadline_ms)


@dataclass(frozen=True)
class PostingNodes:
    nodes: FileNodes
    post: Post

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        known = (self.nodes.term, self.nodes.catalog(), self.nodes.numbers)
        self.post("send", node, tuple(orders), sender, *known)
        return await self.nodes.send(node, orders, sender=sender)

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        return await self.nodes.borrowed(node, region_id)

    async def snapshot(
        self, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        return await self.nodes.snapshot(node, region_id, mark, whole=whole)


@dataclass(frozen=True)
class PostingJobs:
    jobs: Jobs
    post: Post

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        self.post("move", job)
        return await self.jobs.move(job, progress=progress)

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        self.post("backfill", job)
        return await self.jobs.backfill(job, progress=progress)

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        return await self.jobs.validate(job, progress=progress)

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        return await self.jobs.check(job, progress=progress)

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadResult:
        self.post("load", job)
        return await self.jobs.load(job, progress=progress)

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        await self.jobs.throttle(job_id, rows_per_s)


async def deliver(work: tuple[Any, ...], kv: Kv, file: PlaneFile) -> None:
    """What a server that is dead by now has sent. Raises what it would have been answered."""
    match work:
        case ("txn", request, deadline_ms):
            await kv.txn(request, deadline_ms=deadline_ms)
        case ("send", node, orders, sender, term, catalog, numbers):
            await FileNodes(file, term, lambda: catalog, numbers).send(node, orders, sender=sender)
        case ("move", job):
            await FileJobs(file).move(job, progress=lambda *_: None)
        case ("backfill", job):
            await FileJobs(file).backfill(job, progress=lambda *_: None)
        case ("load", job):
            await FileJobs(file).load(job, progress=lambda *_: None)
