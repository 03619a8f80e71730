"""Requests that a dying server sends last do not arrive: the test keeps them, and sends them later.

Each port hands all that it sends to a `Post` first, which returns unless the server dies there.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from keys.store.kv import Kv, Request, TxnAnswer
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
from procedures.ports import Jobs, Progress
from tests.crash.planted import Client
from tests.fakes.wire import Sent
from tests.killed.plane_file import FileJobs, PlaneFile, door

Post = Callable[..., None]


@dataclass
class PostingKv(Client):
    post: Post

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        self.post("txn", request, deadline_ms)
        return await super().txn(request, deadline_ms=deadline_ms)


@dataclass(frozen=True)
class PostingDoor:
    file: PlaneFile
    post: Post

    def __call__(self, sent: Sent) -> httpx.Response:
        if sent.method == "POST":
            self.post("send", sent)
        return door(self.file, sent)


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

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        self.post("load", job)
        return await self.jobs.load(job, progress=progress)

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        await self.jobs.throttle(job_id, rows_per_s)


async def deliver(work: tuple[Any, ...], kv: Kv, file: PlaneFile) -> None:
    """Delivers a request of a server that is dead by now. Raises its error."""
    match work:
        case ("txn", request, deadline_ms):
            await kv.txn(request, deadline_ms=deadline_ms)
        case ("send", sent):
            with suppress(httpx.TransportError):
                door(file, sent)
        case ("move", job):
            await FileJobs(file).move(job, progress=lambda *_: None)
        case ("backfill", job):
            await FileJobs(file).backfill(job, progress=lambda *_: None)
        case ("load", job):
            await FileJobs(file).load(job, progress=lambda *_: None)
