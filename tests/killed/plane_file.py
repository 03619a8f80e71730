"""The data plane in a file, under a lock: it outlives every process that has a hand in it."""

import fcntl
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import httpx

from metasrv.nodes.node_liveness import NodeLiveness
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
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
from procedures.ports import NodeView, Progress
from tests.fakes import wire
from tests.fakes.cluster import CLUSTER_ID
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.plane import FakeJobs, Plane
from tests.fakes.heartbeats import BEAT_MS, beat, register
from tests.fakes.joining import join, joins_due
from tests.fakes.wire import Sent

OF_THE_PROCESS = {"clock", "watch"}  # fields of a plane that each process has of its own


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, MetaError):
            return _error, (type(obj), obj.code, obj.facts)
        return NotImplemented


def _error(kind: type[MetaError], code: str, facts: dict[str, Any]) -> MetaError:
    return kind(code, **facts)


def pickled(value: object) -> bytes:
    """Errors of ours too, which take their facts by name."""
    out = io.BytesIO()
    _Pickler(out).dump(value)
    return out.getvalue()


@dataclass(frozen=True)
class PlaneFile:
    """`folder` holds the state and its lock. A process that dies inside leaves what was before."""

    folder: Path
    clock: Clock

    def store(self, plane: Plane) -> None:
        held = {f.name: getattr(plane, f.name) for f in fields(plane)}
        state = {name: value for name, value in held.items() if name not in OF_THE_PROCESS}
        written = self.folder / "plane.new"
        written.write_bytes(pickled(state))
        written.rename(self.folder / "plane")

    def load(self) -> Plane:
        return Plane(self.clock, **pickle.loads((self.folder / "plane").read_bytes()))

    @contextmanager
    def opened(self) -> Iterator[Plane]:
        """Nobody else sees it meanwhile; what was done to it is kept whatever is raised."""
        with (self.folder / "plane.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            plane = self.load()
            try:
                yield plane
            finally:
                self.store(plane)


def door(file: PlaneFile, sent: Sent) -> httpx.Response:
    """As tests/fakes/wire.py, of the plane in *file*."""
    with file.opened() as plane:
        return wire.door(plane, CLUSTER_ID, sent)


@dataclass(frozen=True)
class FilePlacement:
    """The Placement port: what the leader's own book has of each node, but for who lives.

    Time flies here: a detector would take a slow machine for dead nodes.
    """

    file: PlaneFile
    book: NodeLiveness

    def nodes(self) -> tuple[NodeView, ...]:
        nodes = self.file.load().nodes
        return tuple(replace(view, alive=nodes[view.node_id].alive) for view in self.book.nodes())

    async def reload(self, node: str) -> None:
        await self.book.reload(node)


async def enrol(file: PlaneFile, book: NodeLiveness) -> None:
    """Every node is registered with *book*, and the living ones have been heard."""
    with suppress(MetaError):
        for node in file.load().nodes.values():
            await register(node, book)
    beat_once(file, book)


async def beat_on(file: PlaneFile, book: NodeLiveness) -> None:
    """Heartbeats of every living node, for as long as *book* is that of the leader. A process that
    was started again registers first."""
    while True:
        await file.clock.sleep_ms(BEAT_MS)
        for stranger in beat_once(file, book):
            with suppress(MetaError):
                await register(stranger, book)
        with file.opened() as plane:
            due = joins_due(plane, book)
        await join(due, book)


def beat_once(file: PlaneFile, book: NodeLiveness) -> list[FakeNode]:
    """A heartbeat of every living node; returns the nodes that have to register first."""
    with file.opened() as plane:
        living = [node for node in plane.nodes.values() if node.alive]
        return [node for node in living if not beat(plane, node, book, file.clock)]


@dataclass(frozen=True)
class FileJobs:
    file: PlaneFile

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        with self.file.opened() as plane:
            return await FakeJobs(plane).move(job, progress=progress)

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        with self.file.opened() as plane:
            return await FakeJobs(plane).backfill(job, progress=progress)

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        with self.file.opened() as plane:
            return await FakeJobs(plane).validate(job, progress=progress)

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        with self.file.opened() as plane:
            return await FakeJobs(plane).check(job, progress=progress)

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        with self.file.opened() as plane:
            return await FakeJobs(plane).load(job, progress=progress)

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        """Each of these jobs is over before anybody else is heard."""
