"""Reads of rows that were written since: as many calls as rows, and no lock of the region."""

import sys
import threading
from collections.abc import Callable
from types import FrameType

import pyarrow as pa

from dataplane.region.engine.region import Region
from dataplane.region.format.schema import RegionSchema
from dataplane.region.indexes.unique_recheck import Rivals, settle_some
from dataplane.region.manifests.adoption import Ingest
from dataplane.region.reads.index_scan import ENTRIES_AT_ONCE
from tests.dataplane.region.rig import SPEC, header, place, write

INDEX = 1
UPDATED = [b"k%04d" % at for at in range(ENTRIES_AT_ONCE.rows, ENTRIES_AT_ONCE.rows + 100)]
KEYS = [b"k%04d" % at for at in range(ENTRIES_AT_ONCE.rows + 100)]
PATIENCE_S = 60
"""The longest wait in seconds for a thread that must not wait for anything."""


def counted(act: Callable[[], object]) -> int:
    """Calls, of Python's functions and of C's, that *act* makes."""
    calls = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def indexed(statements: int) -> Region:
    """A region with `KEYS`, each with an entry, in a file, and as many other rows in memory, each
    of a statement of its own."""
    region = Region.create(place(), SPEC, 1)
    region.set_schema(RegionSchema(1, 0, SPEC.columns, frozenset({INDEX})))
    count = len(KEYS)
    both = pa.RecordBatch.from_pydict(
        {
            "_key": pa.array([*KEYS, *(b"e" + key for key in KEYS)], pa.binary()),
            "_op": pa.array([0] * 2 * count, pa.uint8()),
            "_family": pa.array([0] * count + [INDEX] * count, pa.int32()),
            "_row": pa.array([None] * count + KEYS, pa.binary()),
            "c1": pa.array([1] * count + [None] * count, pa.int64()),
        }
    )
    region.writer.apply([(header("rows"), both)])
    region.maintenance.flush()
    for at in range(statements):
        write(region, f"other-{at}", {b"o%06d" % at: (at, None)})
    return region


def calls_of_scan_beside_an_update(statements: int, updates: int) -> int:
    """The number of calls in one step of an index scan whose rows were all updated after the scan
    had begun."""
    region = indexed(statements)
    scan = region.reader.scan_index(INDEX, schema_version=1)
    next(scan)
    for at in range(updates):
        write(region, f"update-{at}", dict.fromkeys(UPDATED, (at, None)))
    found = []

    calls = counted(lambda: found.append(next(scan)))

    (part,) = found
    assert part.column("_key").to_pylist() == UPDATED
    assert part.column("c1").to_pylist() == [1] * len(UPDATED), "as of the scan's begin"
    return calls


def test_given_rows_updated_since_when_an_index_scan_meets_them_then_each_costs_the_same() -> None:
    few = calls_of_scan_beside_an_update(statements=4, updates=1)
    many = calls_of_scan_beside_an_update(statements=400, updates=1)

    assert many < few + len(UPDATED)


def test_given_rows_updated_often_when_a_scan_meets_them_then_each_is_found_at_once() -> None:
    once = calls_of_scan_beside_an_update(statements=4, updates=1)
    often = calls_of_scan_beside_an_update(statements=4, updates=60)

    assert often < once + 8 * len(UPDATED)


def calls_of_judging_beside_an_update(statements: int) -> int:
    """The number of calls in the second look at the keys of a unique index whose rows were updated
    since."""
    region = indexed(statements)
    region.set_schema(RegionSchema(), mark="reorg")
    ingest = Ingest("p", "attempts/a", INDEX, "reorg", (), unique_columns=(1,))
    entries = [b"e" + key for key in UPDATED]
    with region.file_ingest._seen(ingest) as seen:
        write(region, "update", dict.fromkeys(UPDATED, (2, None)))
        return counted(lambda: settle_some(entries, seen, Rivals(seen.index)))


def test_given_rows_updated_since_when_keys_are_judged_then_other_batches_cost_nothing() -> None:
    few = calls_of_judging_beside_an_update(statements=4)
    many = calls_of_judging_beside_an_update(statements=400)

    assert many < few + len(UPDATED)


def in_a_thread(act: Callable[[], object]) -> bool:
    """Whether it ended within the patience."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return not thread.is_alive()


def test_given_a_held_lock_when_a_heartbeat_asks_for_stats_then_it_does_not_wait() -> None:
    region = indexed(2)

    with region._content._lock:
        assert in_a_thread(region.stats)


def test_given_a_flush_under_way_when_asked_for_stats_then_no_row_is_counted_twice() -> None:
    region = indexed(2)
    before = region.stats()

    region._content.freeze(2, 0, SPEC.columns)

    assert region.stats().memtable_bytes == before.memtable_bytes
    assert region.stats().rows == before.rows


def test_given_a_held_lock_when_an_index_scan_goes_on_then_it_does_not_wait() -> None:
    region = indexed(2)
    scan = region.reader.scan_index(INDEX, schema_version=1)
    next(scan)
    found: list[int] = []

    with region._content._lock:
        is_done = in_a_thread(lambda: found.append(next(scan).num_rows))

    assert is_done
    assert found == [len(UPDATED)]
