"""Memory of all regions of a node together: counted as it is taken, and bounded."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.memory.budget import REPLAY_BYTES_MIN, MemoryBudget
from dataplane.region.place import RegionPlace
from tests.dataplane.region.rig import SPEC, A, B, contents, order, write
from tests.fakes.clock import FakeClock

ROOT = Path(__file__).parents[4]
PATIENCE_S = 120
LARGE = "x" * 200_000
NOISE_BYTES = 4 << 20
"""Bytes that allocators may add, in a process that has taken some megabytes."""


def budgeted(budget: MemoryBudget, disk: MemoryDisk, root: str = A) -> RegionPlace:
    return RegionPlace(disk, root, FakeClock(), budget=budget)


def test_given_regions_when_they_are_written_flushed_and_closed_then_the_budget_counts_them() -> (
    None
):
    budget, disk = MemoryBudget(), MemoryDisk(MemoryStore())
    first = Region.create(budgeted(budget, disk), SPEC, 1)
    second = Region.create(budgeted(budget, disk, B), SPEC, 1)
    write(first, "s-1", {b"a": (1, LARGE)})
    write(second, "s-1", {b"a": (1, "x")})

    both = first.stats().memtable_bytes + second.stats().memtable_bytes
    assert _row_bytes(budget) == both > len(LARGE)
    second.close()
    assert _row_bytes(budget) == first.stats().memtable_bytes
    first.maintenance.flush()
    assert _row_bytes(budget) == 0
    write(first, "s-2", {b"b": (1, LARGE)})
    again = Region.open(budgeted(budget, disk), order(1))
    assert _row_bytes(budget) == first.stats().memtable_bytes + again.stats().memtable_bytes


def test_given_little_room_when_a_large_region_is_written_then_it_flushes_and_no_other() -> None:
    budget, disk = MemoryBudget(1_000_000), MemoryDisk(MemoryStore())
    large = Region.create(budgeted(budget, disk), SPEC, 1)
    small = Region.create(budgeted(budget, disk, B), SPEC, 1)
    write(small, "s", {b"a": (1, "x")})

    for number in range(8):
        write(large, f"s-{number}", {b"%d" % number: (1, LARGE)})
        write(small, f"s-{number}", {b"%d" % number: (1, "x")})

    assert large.stats().files > 0
    assert small.stats().files == 0
    assert not budget.is_full


def test_given_pressure_when_a_log_is_replayed_then_it_becomes_files_and_all_is_there() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(budgeted(MemoryBudget(), disk), SPEC, 1)
    rows = {b"%d" % at: (at, LARGE[: REPLAY_BYTES_MIN // 2]) for at in range(8)}
    for at, (key, row) in enumerate(rows.items()):
        write(region, f"s-{at}", {key: row})
        region.maintenance.close_log()
    budget = MemoryBudget(2 * REPLAY_BYTES_MIN)

    again = Region.open(budgeted(budget, disk), order(1))

    assert again.stats().files > 1
    assert budget.bytes < budget.bytes_max
    assert contents(again) == rows


def test_given_many_replays_at_once_when_room_is_short_then_all_end() -> None:
    budget, threads, ended = MemoryBudget(1_000), [], []

    def replay(number: int) -> None:
        share = budget.share()
        for _ in range(3):
            with budget.reading(400 + number):
                share.set(300)
        share.set(0)
        ended.append(number)

    for number in range(200):
        threads.append(threading.Thread(target=replay, args=(number,), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert len(ended) == 200
    assert budget.bytes == 0


PROGRAM = """
import gc, json, os, sys
import pyarrow as pa
from dataplane.region.format.columns import ColumnDef, log_schema
from dataplane.region.format.families import ROWS
from dataplane.region.log.logged_group import *
from dataplane.region.memory.memory import Memory

columns, group, rows = map(int, sys.argv[1:])
defs = tuple(ColumnDef(id=at, type="int64", nullable=True) for at in range(1, columns + 1))
schema = LoggedSchema.of(log_schema(defs))
known = {schema.id: schema.schema}

def resident():
    gc.collect()
    pa.default_memory_pool().release_unused()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")

def one(number):
    key, op = pa.array([b"%016d" % number], pa.binary()), pa.array([0], pa.uint8())
    arrays = [key, op, *(pa.array([number], pa.int64()) for _ in defs)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.schema)

def load(memory, rows):
    for start in range(1, rows, group):
        numbers = range(start, start + group)
        statements = [LoggedStatement(f"s-{at}", at, 1, 1) for at in numbers]
        part = GroupPart(ROWS, schema, [(at, one(n)) for at, n in enumerate(numbers)])
        memory.add(decode_group(encode_group(statements, [part]), known, "").parts, 0)

load(Memory(defs), 2_000)
before, memory = resident(), Memory(defs)
load(memory, rows)
print(json.dumps({"taken": resident() - before, "counted": memory.bytes}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "group", "rows"), [(2, 64, 24_000), (50, 64, 8_000), (10, 1, 4_000)]
)
def test_given_one_row_statements_when_counted_then_it_is_what_the_process_has_taken(
    columns: int, group: int, rows: int
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(columns), str(group), str(rows)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)

    found = json.loads(done.stdout)

    assert abs(found["taken"] - found["counted"]) < 0.3 * found["counted"] + NOISE_BYTES


def _row_bytes(budget: MemoryBudget) -> int:
    return budget.bytes - budget.statement_bytes
