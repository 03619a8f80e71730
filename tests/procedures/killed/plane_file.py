"""The data plane in a file, under a lock: it outlives every process that has a hand in it."""

import fcntl
import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import count
from pathlib import Path
from typing import Any

from base.clock import Clock
from base.errors import MetaError
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
from keys.catalog import Catalog
from procedures.ports import NodeView, Progress, Sender
from tests.fakes.plane import FakeJobs, FakeLeases, FakeNodes, FakePlacement, Plane

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


@dataclass(frozen=True)
class FileNodes:
    """The Nodes port of one term."""

    file: PlaneFile
    term: int
    catalog: Callable[[], Catalog]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        with self.file.opened() as plane:
            nodes = FakeNodes(plane, self.term, self.catalog, self.numbers)
            return await nodes.send(node, orders, sender=sender)

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        with self.file.opened() as plane:
            return await FakeNodes(plane, self.term).borrowed(node, region_id)

    async def snapshot(
        self, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        with self.file.opened() as plane:
            return await FakeNodes(plane, self.term).snapshot(node, region_id, mark, whole=whole)


@dataclass(frozen=True)
class FileLeases:
    file: PlaneFile

    def free_in_ms(self, node: str, region_ids: Sequence[str]) -> int:
        with self.file.opened() as plane:
            return FakeLeases(plane).free_in_ms(node, region_ids)


@dataclass(frozen=True)
class FilePlacement:
    file: PlaneFile

    def nodes(self) -> tuple[NodeView, ...]:
        with self.file.opened() as plane:
            return FakePlacement(plane).nodes()


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

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadResult:
        with self.file.opened() as plane:
            return await FakeJobs(plane).load(job, progress=progress)

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        """Each of these jobs is over before anybody else is heard."""
