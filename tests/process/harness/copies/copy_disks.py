"""Regions with three copies while disks of their nodes are slow, full, or lose all files under a
process that lives: of each fault first the disk of a copy, then that of the leader."""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from metasrv.sdk.client import AsyncClient
from tests.dataplane.datanode.process.program import traced
from tests.process.harness.copies.copy_cuts import copies_of, has_left, in_sync
from tests.process.harness.copies.copy_outages import (
    COPIES,
    NODES,
    CountingReader,
    copied,
    count_of,
    leader_of_first,
    leads_elsewhere,
)
from tests.process.harness.copies.equal_copies import unequal_copies
from tests.process.harness.faults import disk_of
from tests.process.harness.node_outages import acknowledged_again, rows_of, writers_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig
from tests.process.harness.writer import Writer, wrong_rows

SLOW = "delay_enter=200000"
"""Each sync takes 0.2 s longer."""
DISK_BYTES = 384 << 20
"""A node with less than 256 MiB free is given no region."""
FILLER = bytes(1 << 20)
FULL = "storage-full"


@dataclass(frozen=True, slots=True)
class DiskField:
    """The targets of faults."""

    rig: Rig
    db: AsyncClient
    writers: Sequence[Writer]
    folder: Path
    """For what faults write down."""

    def root(self, node: str) -> Path:
        return self.rig.playground.datanode_roots[node]

    def refusals(self, code: str) -> int:
        """The number of batches for which the writers were told that code."""
        codes = sum((writer.codes for writer in self.writers), Counter[str]())
        return sum(count for text, count in codes.items() if code in text)

    async def is_refused(self, code: str, before: int) -> bool:
        return self.refusals(code) > before

    async def writable_ms(self) -> int:
        return await acknowledged_again(self.rig, self.writers)


DiskFault = Callable[[DiskField, str, bool], Awaitable[int]]
"""Befalls the disk of a node, which leads or not; returns the time in ms until writers were
answered."""


async def copies_on_bad_disks(folder: Path) -> Seen:
    """No acknowledged row is lost, no read lacks one, copies are equal in the end, and `check`
    finds nothing."""
    with _small_disks(folder) as are_small:
        async with copied(folder, regions=1) as (rig, db):
            writers = await writers_of(db, "t")
            field = DiskField(rig, db, writers, folder)
            reader = CountingReader(
                partial(count_of, db), lambda: sum(writer.count("ok") for writer in writers)
            )
            async with writing(writers), _reading(reader):
                await acknowledged_again(rig, writers)
                numbers = await _each_fault(field, are_small)
            await rig.converged()
            rows = await rows_of(db, "t")
            unequal = await unequal_copies(rig, db, "t")
            checked = await rig.check("--data")
    told = {
        "rows": len(rows),
        "reads": len(reader.counts),
        "reads refused": reader.refused,
        "writers": [dict(writer.codes) for writer in writers],
    }
    kept = must(it_was_read=len(reader.counts) > 0)
    wrong = (*kept, *reader.stale, *wrong_rows(rows, writers), *unequal, *checked)
    return Seen({**numbers, **told}, wrong)


async def _each_fault(field: DiskField, are_small: bool) -> Mapping[str, object]:
    numbers = dict[str, object]()
    for name, fault in DISK_FAULTS.items():
        for of_leader in (False, True):
            whose = "the leader's" if of_leader else "a copy's"
            what = f"writable_ms with {whose} disk {name}"
            if fault is full and not are_small:
                numbers[what] = "not permitted here"
                continue
            await field.rig.until(partial(in_sync, field.db, COPIES))
            leader = await leader_of_first(field.db)
            node = leader if of_leader else (await copies_of(field.db))[0]
            numbers[what] = await fault(field, node, of_leader)
    await field.rig.until(partial(in_sync, field.db, COPIES))
    return numbers


async def slow(field: DiskField, node: str, of_leader: bool) -> int:
    """Writes go on, slower."""
    pid, output = field.rig.playground.pid(node), field.folder / "syncs"
    with traced(pid, output, "fdatasync,fsync", SLOW):
        return await field.writable_ms()


async def full(field: DiskField, node: str, of_leader: bool) -> int:
    """A copy leaves the set, and writes go on. A leader refuses writes, and takes them again once
    there is space."""
    filler = field.root(node) / "filler"
    with filler.open("wb", buffering=0) as opened, suppress(OSError):
        while opened.write(FILLER):
            pass
    if of_leader:
        before = field.refusals(FULL)
        await field.rig.until(lambda: field.is_refused(FULL, before))
        assert await leader_of_first(field.db) == node, "no other copy is to lead"
        filler.unlink()
        return await field.writable_ms()
    await field.rig.until(partial(has_left, field.db, node))
    writable_ms = await field.writable_ms()
    filler.unlink()
    return writable_ms


async def removed(field: DiskField, node: str, of_leader: bool) -> int:
    """All files of regions are gone, and the process lives. Another copy leads where it led; its
    own copy is made anew."""
    for folder in (field.root(node) / "regions").iterdir():
        shutil.rmtree(folder)
    if of_leader:
        await field.rig.until(partial(leads_elsewhere, field.db, node))
    else:
        await field.rig.until(partial(has_left, field.db, node))
    return await field.writable_ms()


DISK_FAULTS: Mapping[str, DiskFault] = {"slow": slow, "full": full, "removed": removed}


@contextmanager
def _small_disks(folder: Path) -> Iterator[bool]:
    """The roots of all nodes, each as a file system of its own, if this process may make them."""
    roots = [folder / "playground" / f"dn-{number}" / "root" for number in range(1, NODES + 1)]
    with ExitStack() as stack:
        made = [stack.enter_context(disk_of(root, DISK_BYTES)) for root in roots]
        yield None not in made


@asynccontextmanager
async def _reading(reader: CountingReader) -> AsyncIterator[None]:
    """It goes on until the block ends."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reader.run())
        try:
            yield
        finally:
            reader.is_over = True
