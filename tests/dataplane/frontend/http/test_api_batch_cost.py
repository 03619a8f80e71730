"""Work on one batch of rows on its way to the disk, counted in calls: load hardly changes them."""

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pyarrow as pa

from metasrv_base.rows.arrow_parts import ArrowParts
from tests.dataplane.frontend.bench import Bench, running
from tests.dataplane.frontend.http.requests import stream

CALLS_MAX = 1_160
"""Calls of functions of these folders, and by them of C, for a batch: 1,110 as measured,
and some more where a thread wakes the loop once more than it has to."""
OURS = tuple(f"{Path(__file__).parents[4] / name}/" for name in ("dataplane", "metasrv_base"))
ONCE = ("encode_batch", "body_of", "read_batch", "encode_group", "decode_group", "encode_record")
"""Functions that go through all rows, or all bytes."""
OBJECTS = "key_objects"
"""Makes a Python object of each key."""


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Calls of our own functions by name, of this thread and of those that begin meanwhile."""
    calls: Counter[str] = Counter()
    is_over = False

    def note(frame: FrameType, event: str, argument: object) -> None:
        if is_over or not frame.f_code.co_filename.startswith(OURS):
            return
        if event == "call":
            calls[frame.f_code.co_name] += 1
        elif event == "c_call":
            calls["of C"] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        is_over = True
        sys.setprofile(None)
        threading.setprofile(None)


def parts(first: int, rows: int, step: int = 1) -> list[bytes]:
    ids = list(range(first, first + rows * step, step))
    batch = pa.RecordBatch.from_pydict({"id": ids, "a": ids, "b": [f"w{id}" for id in ids]})
    made = ArrowParts(batch.schema)
    return [made.part(batch), made.end()]


async def counted(bench: Bench, first: int, rows: int, step: int = 1) -> Counter[str]:
    body = parts(first, rows, step)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    with counting() as calls:
        done = await stream(bench, body)
    assert (done.status, done.json["rows"]) == (200, rows)
    return calls


async def test_given_a_batch_when_inserted_then_its_rows_are_gone_through_once() -> None:
    async with running() as bench:
        for warm in range(3):
            await stream(bench, parts(warm * 1_000, 1_000))

        calls = await counted(bench, 10_000, 1_000)

    assert {name: calls[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert calls[OBJECTS] == 0, "no index needs them"
    assert calls.total() <= CALLS_MAX, calls.total()


async def test_given_rows_among_others_when_inserted_then_their_keys_are_looked_up() -> None:
    """The count of objects counts."""
    async with running() as bench:
        for warm in range(3):
            await stream(bench, parts(warm * 10_000, 1_000, step=2))

        apart = await counted(bench, 40_000, 1_000, step=2)
        among = await counted(bench, 40_001, 1_000, step=2)

    assert apart[OBJECTS] == 0
    assert among[OBJECTS] > 0


async def test_given_more_rows_in_a_batch_when_inserted_then_no_more_calls_are_made() -> None:
    async with running() as bench:
        for warm in range(3):
            await stream(bench, parts(warm * 1_000, 1_000))

        few = await counted(bench, 10_000, 600)
        many = await counted(bench, 20_000, 2_400)

    assert many.total() <= few.total() + 50
