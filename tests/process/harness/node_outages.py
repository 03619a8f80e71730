"""Done when (d) and (e): a datanode killed, or stopped beyond its lease, under writers."""

import asyncio
import shutil
import signal
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from metasrv.sdk.client import AsyncClient
from metasrv.sdk.rows.binding import Bound
from metasrv_base.errors import MetaError
from metasrv_base.rows.nodes import ARROW, NodePools
from metasrv_base.rows.split import body_of
from metasrv_base.schema.keybatch import encode_batch
from metasrv_base.wire.node.batches import OP_PUT, BatchHeader, ChecksumRequest, ChecksumResult
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig, running, table_spec
from tests.process.harness.writer import Writer, wrong_rows

WRITABLE_S = 60
PATIENT_MS = 60_000
MOVE_S = 240
LATE = 4
ROWS_MIN = 100


@asynccontextmanager
async def writing(writers: Sequence[Writer]) -> AsyncIterator[None]:
    """They go on until the block ends, and finish what they have begun."""
    async with asyncio.TaskGroup() as tasks:
        for writer in writers:
            tasks.create_task(writer.run())
        try:
            yield
        finally:
            for writer in writers:
                writer.stop()


async def writers_of(db: AsyncClient, name: str) -> tuple[Writer, Writer]:
    """One that gives up soon, and one whose every statement outlives a failover."""
    hasty = Writer(db.table(name))
    return hasty, Writer(db.table(name), first=1_000_000, statement_ms=PATIENT_MS)


async def acknowledged_again(rig: Rig, writers: Sequence[Writer]) -> int:
    """Both are told `ok` for something sent from now on; after how many ms."""
    before_ms = rig.clock.mono_ms()
    begun = [writer.begun for writer in writers]

    async def look() -> bool:
        pairs = zip(writers, begun, strict=True)
        return all(writer.acknowledged > count for writer, count in pairs)

    try:
        await rig.until(look, WRITABLE_S + 5)
    except AssertionError as error:
        raise AssertionError("\n".join(str(writer) for writer in writers)) from error
    return rig.clock.mono_ms() - before_ms


async def rows_of(db: AsyncClient, name: str) -> list[dict[str, Any]]:
    table = await db.table(name).to_arrow()
    found: list[dict[str, Any]] = table.to_pylist()
    return found


# Killed ----------------------------------------------------------------------------------------


async def nothing_else(rig: Rig) -> str:
    return ""


async def node_killed(
    folder: Path,
    flags: Mapping[str, str] | None = None,
    beside: Callable[[Rig], Awaitable[str]] = nothing_else,
) -> Seen:
    """Writable again soon; whole when its disk is gone after the move, and all others restart.

    What happens *beside* its failover is told among the numbers.
    """
    async with running(folder, metasrvs=2, datanodes=3, flags=flags) as rig, rig.client() as db:
        await db.tables.create(table_spec("t", regions=4))
        writers = await writers_of(db, "t")
        async with writing(writers):
            await acknowledged_again(rig, writers)
            dead = (await db.tables.route("t")).regions[0].leader
            assert dead is not None
            await rig.kill(dead)
            killed_ms = rig.clock.mono_ms()
            async with asyncio.TaskGroup() as tasks:
                writable = tasks.create_task(acknowledged_again(rig, writers))
                told = await beside(rig)
            await rig.converged(MOVE_S)
            moved_ms = rig.clock.mono_ms() - killed_ms
        before = await rows_of(db, "t")
        shutil.rmtree(rig.playground.datanode_roots[dead])
        for node in sorted(rig.playground.datanode_urls.keys() - {dead}):
            await rig.kill(node)
            await rig.restart(node)
        after = await rows_of(db, "t")
        agreement = await rig.agreement()
    numbers = {
        "writable_ms": writable.result(),
        "moved_ms": moved_ms,
        "beside": told,
        "rows": len(after),
        "hasty": writers[0],
        "patient": writers[1],
    }
    kept = must(
        writable_in_time=writable.result() < WRITABLE_S * 1000,
        same_rows_without_the_disk=sorted(r["id"] for r in before)
        == sorted(r["id"] for r in after),
        enough_was_written=min(writer.count("ok") for writer in writers) > ROWS_MIN,
    )
    return Seen(numbers, (*kept, *wrong_rows(after, writers), *agreement.wrong))


# Stopped ---------------------------------------------------------------------------------------


async def node_stopped(
    folder: Path, flags: Mapping[str, str] | None = None, pause_s: float = 0.0
) -> Seen:
    """At least *pause_s*, and until another leads; what waited in its socket counts for nothing."""
    async with (
        running(folder, flags=flags) as rig,
        rig.client() as db,
        asyncio.TaskGroup() as tasks,
    ):
        await db.tables.create(table_spec("t", regions=1))
        writers = await writers_of(db, "t")
        bound = await db.table("t").binding.get()
        old = bound.regions[0].leader
        assert old is not None
        async with writing(writers):
            await acknowledged_again(rig, writers)
            await rig.kill(old, signal.SIGSTOP)
            stopped_ms = rig.clock.mono_ms()
            late = [tasks.create_task(_late_write(rig, bound, number)) for number in range(LATE)]
            writable_ms = await acknowledged_again(rig, writers)
            gone_ms = rig.clock.mono_ms() - stopped_ms
            await rig.clock.sleep_ms(max(0, int(pause_s * 1000 - gone_ms)))
            await rig.kill(old, signal.SIGCONT)
            answers = [*await asyncio.gather(*late), await _late_write(rig, bound, LATE)]
            read = await _late_read(bound)
            await acknowledged_again(rig, writers)
        await rig.until(lambda: _has_no_region(db, old))
        rows = await rows_of(db, "t")
        agreement = await rig.agreement()
        checked = await rig.check()
    numbers = {
        "writable_ms": writable_ms,
        "late writes": answers,
        "late read": str(read),
        "hasty": writers[0],
        "patient": writers[1],
    }
    kept = must(
        writable_in_time=writable_ms < WRITABLE_S * 1000,
        nothing_acknowledged_late=all(status >= 400 for status in answers),
        nothing_read_late=isinstance(read, MetaError),
    )
    return Seen(numbers, (*kept, *wrong_rows(rows, writers), *agreement.wrong, *checked))


async def _late_write(rig: Rig, bound: Bound, number: int) -> int:
    """To the leader of that route, whatever the route says by now."""
    first = 9_000_000 + 100 * number
    ids = pa.array(range(first, first + 10), pa.int64())
    keys = encode_batch(bound.layout.key_types, [ids])
    puts, words = pa.array([OP_PUT] * 10, pa.uint8()), pa.array(["late"] * 10)
    rows = pa.RecordBatch.from_arrays([keys, puts, ids, words], names=["_key", "_op", "c1", "c2"])
    header = BatchHeader(
        table_id=bound.layout.table_id,
        schema_version=bound.layout.schema_version,
        epoch=bound.regions[0].epoch,
        statement_id=str(uuid.uuid4()),
    )
    region = bound.regions[0]
    answer = await rig.http.post(
        f"{region.address}/node/v1/regions/{region.region_id}/batch",
        content=body_of(rows, header),
        headers={"content-type": ARROW},
        timeout=2 * PATIENT_MS / 1000,
    )
    return answer.status_code


async def _late_read(bound: Bound) -> object:
    wanted = ChecksumRequest(
        table_id=bound.layout.table_id,
        schema_version=bound.layout.schema_version,
        epoch=bound.regions[0].epoch,
    )
    nodes = NodePools()
    try:
        region = bound.regions[0]
        return await nodes.read(region, "checksum", wanted, PATIENT_MS, ChecksumResult)
    except MetaError as error:
        return error
    finally:
        await nodes.close()


async def _has_no_region(db: AsyncClient, node: str) -> bool:
    return not (await db.nodes.get(node)).regions
