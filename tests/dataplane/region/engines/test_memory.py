"""The engine `memory`: rows as in every region, nothing of them on the disk, and lost with it."""

import gc
import weakref
from random import Random

import pytest

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.engines.memory import is_kept
from dataplane.region.engines.registry import ENGINES, engine_of
from dataplane.region.format.schema import RegionSchema
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.place import RegionLimits, RegionPlace
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable
from metasrv_base.schema.scalars import JsonScalar
from tests.dataplane.region.rig import (
    SPEC,
    A,
    B,
    Contents,
    Row,
    batch,
    contents,
    created,
    order,
    place,
    write,
)
from tests.dataplane.region.snapshots import rows_of
from tests.fakes.clock import FakeClock

ROW = {b"a": (1, "x")}
SMALL = RegionLimits(memtable_bytes=64 << 10)


def many(number: int) -> dict[bytes, Row | None]:
    """500 KiB that no codec makes small."""
    text = Random(number)
    return {b"%d-%d" % (number, at): (at, text.randbytes(512).hex()) for at in range(500)}


class Stop(Exception):
    """The process ends here."""


def lives(disk: Disk, root: str = A) -> Region:
    return created("memory", place(disk, root))


def made_again(store: MemoryStore) -> Contents | str:
    """The rows when the order to create is sent again; or the code of the refusal."""
    try:
        return contents(lives(MemoryDisk(store)))
    except Unavailable as error:
        return error.code


def opened(engine: str, store: MemoryStore) -> str:
    """The code with which an order to open is refused."""
    with pytest.raises(Unavailable) as refusal:
        ENGINES[engine].open(place(MemoryDisk(store)), order(1), {})
    return refusal.value.code


def test_given_rows_when_their_process_has_ended_then_lost_and_never_empty() -> None:
    store = MemoryStore()
    write(lives(MemoryDisk(store)), "s-1", ROW)

    for _ in range(2):
        assert opened("memory", store) == "region-lost"
        assert opened("lsm", store) == "region-lost", "by a server that names no engine"
        assert made_again(store) == "region-lost"
        store.crash()
    with pytest.raises(Unavailable, match="region-lost"):
        ENGINES["memory"].open(place(MemoryDisk(store), B), order(2, A), {})


def test_given_a_create_that_stops_anywhere_when_ordered_again_then_empty_or_lost_as_it_must() -> (
    None
):
    stopped = 0
    while True:
        store, left, acknowledged = MemoryStore(), [stopped], False

        def step(_operation: str, _path: str, left: list[int] = left) -> None:
            if left[0] == 0:
                raise Stop
            left[0] -= 1

        try:
            write(lives(MemoryDisk(store, step)), "s-1", ROW)
            acknowledged = True
        except Stop:
            pass
        store.crash(torn=stopped)
        found = made_again(store)
        if acknowledged:
            assert found == "region-lost"
            break
        assert found in ({}, "region-lost"), "the segment stands before the answer"
        stopped += 1
    assert stopped > 10


def test_given_a_region_that_nobody_wrote_to_when_made_again_then_it_is_there() -> None:
    store = MemoryStore()
    first = lives(MemoryDisk(store))

    again = lives(MemoryDisk(store))
    write(again, "s-1", ROW)

    assert contents(again) == ROW
    with pytest.raises(MetaError):
        write(first, "late", ROW)


def test_given_writes_flushes_and_floors_then_the_disk_has_three_small_files() -> None:
    store = MemoryStore()
    region = created("memory", place(MemoryDisk(store), limits=SMALL))
    for number in range(12):
        write(region, f"s-{number}", {b"k%d" % number: (number, "x" * 100)})
        region.maintenance.flush()
        region.set_schema(RegionSchema(number + 2, 1, region.spec.columns), f"m-{number}")
        region.maintenance.compact()

    assert len(contents(region)) == 12
    assert region.stats().wal_bytes == 0
    assert sorted(name.removeprefix(f"{A}/") for name in store.live) == [
        "fence-1-1",
        "manifest-1-1-1",
        "wal-1-1-1",
    ]


def test_given_a_successor_elsewhere_when_the_old_one_writes_then_it_acknowledges_nothing() -> None:
    store = MemoryStore()
    region = lives(MemoryDisk(store))
    write(region, "s-1", ROW)
    with pytest.raises(Unavailable, match="region-lost"):
        ENGINES["memory"].open(place(MemoryDisk(store), B), order(2, A), {})

    with pytest.raises(MetaError):
        write(region, "s-2", {b"b": (2, None)})

    assert region.stopped is not None
    assert region.stopped.code == "stale-epoch"


def test_given_a_region_that_is_begun_anew_then_statements_of_before_are_refused() -> None:
    """Nobody knows a late copy from a first one: the memory of statements ended with the rows."""
    disk = MemoryDisk(MemoryStore())
    old = lives(disk)
    at = place(disk, B)
    before_ms = at.clock.wall_ms()
    write(old, "s-1", ROW, sent_ms=before_ms)
    old.close()
    anew = ENGINES["memory"].create(at, SPEC, 2, (A,), {})

    with pytest.raises(Conflict) as refusal:
        write(anew, "s-1", ROW, sent_ms=before_ms)

    assert (refusal.value.code, refusal.value.facts["is_forgotten"]) == ("statement-too-old", True)
    assert contents(anew) == {}
    assert write(anew, "s-2", ROW, sent_ms=before_ms + 1).rows == 1


def test_given_a_full_node_when_rows_come_then_refused_and_deletions_pass() -> None:
    budget = MemoryBudget(4 << 20)
    region_place = RegionPlace(MemoryDisk(MemoryStore()), A, FakeClock(), SMALL, budget=budget)
    region = created("memory", region_place)
    put, delete = batch({b"x": (1, "x")}), batch({b"x": None})
    number = 0
    while budget.kept_bytes < budget.kept_max:
        region.must_have_room(put)
        write(region, f"s-{number}", many(number))
        region.maintenance.flush()
        number += 1

    with pytest.raises(Unavailable) as refusal:
        region.must_have_room(put)
    region.must_have_room(delete)

    assert refusal.value.facts["limit_bytes"] == budget.kept_max
    assert budget.excess == 0, "no other region is flushed for what no flush frees"
    region.close()
    assert (budget.kept_bytes, budget.bytes) == (0, 0)


def test_given_a_bound_of_its_own_when_reached_then_rows_are_refused() -> None:
    region = created("memory", place(limits=SMALL), region_bytes=1 << 20)
    rows = batch({b"x": (1, "x")})
    region.must_have_room(rows)
    for number in range(3):
        write(region, f"s-{number}", many(number))

    with pytest.raises(Unavailable) as refusal:
        region.must_have_room(rows)

    assert refusal.value.facts["limit_bytes"] == 1 << 20


def test_given_a_mark_when_a_job_asks_then_another_process_reads_the_rows_of_then() -> None:
    store = MemoryStore()
    region = lives(MemoryDisk(store))
    write(region, "s-1", {b"a": (1, "x"), b"b": (2, "y")})
    region.set_schema(RegionSchema(1, 1, region.spec.columns), "m")
    write(region, "s-2", {b"a": (9, "z"), b"b": None})

    snapshot = region.snapshot("m")

    assert rows_of(MemoryDisk(store), snapshot) == {b"a": (1, "x"), b"b": (2, "y")}
    assert region.snapshot("m") == snapshot
    assert contents(region) == {b"a": (9, "z")}
    store.crash()
    assert rows_of(MemoryDisk(store), snapshot) == {b"a": (1, "x"), b"b": (2, "y")}, "durable"


def test_given_a_closed_region_when_nobody_reads_then_its_memory_is_free() -> None:
    region = lives(MemoryDisk(MemoryStore()))
    write(region, "s-1", ROW)
    region.maintenance.flush()
    held = weakref.ref(region.place.disk)
    reader = region.reader.scan()
    next(reader)

    region.close()
    del region
    assert held() is not None, "a reader has begun"
    del reader
    gc.collect()

    assert held() is None


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("rocks", {}, "unsupported"),
        ("memory", {"flush_age_ms": 1_000}, "invalid-request"),
        ("memory", {"region_bytes": 1}, "invalid-request"),
        ("memory", {"region_bytes": True}, "invalid-request"),
        ("lsm", {"memtable_bytes": "1"}, "invalid-request"),
    ],
)
def test_given_an_engine_or_option_that_there_is_not_then_refused_with_what_there_is(
    name: str, options: dict[str, JsonScalar], code: str
) -> None:
    with pytest.raises(Refused) as refusal:
        engine_of(ENGINES, name, options)

    assert refusal.value.code == code
    if code == "unsupported":
        assert refusal.value.facts["has"] == ["lsm", "memory"]


def test_given_options_of_lsm_then_they_bound_the_region_within_the_node() -> None:
    small = created("lsm", place(limits=SMALL), memtable_bytes=1 << 20, flush_age_ms=500)

    assert small.place.limits.memtable_bytes == SMALL.memtable_bytes
    assert small.place.limits.flush_age_ms == 500


def test_given_names_of_a_root_then_the_disk_has_what_outlives_the_process() -> None:
    kept = ["fence-1-1", "wal-1-1-1", "manifest-1-1-1", "manifest-2-3-1.tmp", "attempts"]
    kept += ["attempts/p-1", "attempts/p-1/1.parquet"]
    held = ["manifest-1-1-2", "manifest-1-1-2.tmp", "data", "data/1-1-1.parquet", "ids-1-1-1"]

    assert [name for name in [*kept, *held] if is_kept(name)] == kept
