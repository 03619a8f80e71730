"""Copies of a node answer rows of an age that they know, and no others."""

import asyncio

import pytest

from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.region.copies.staleness import CommonAt
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion, CopyRows
from metasrv_base.errors import Unavailable
from tests.dataplane.datanode.copies.fetch_bench import open_order
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, B, C, order, place, write
from tests.fakes.clock import FakeClock


class Bench:
    """A copy that has taken two rows of its leader, of which the first is common."""

    def __init__(self) -> None:
        self.clock = FakeClock(now_ms=10_000)
        self.disk = MemoryDisk(MemoryStore())
        self.region = leader(self.disk)
        for number in (1, 2):
            write(self.region, f"s-{number}", {f"k{number}".encode(): (number, "x")})
        self.followed = self.follows(copy_at(self.disk))
        self.hear(common=1)

    def follows(self, copy: CopyRegion) -> FollowedRegion:
        return FollowedRegion(copy, open_order(1, None), self.clock.mono_ms)

    def hear(self, common: int) -> None:
        asyncio.run(self.followed.take(B, sent(self.region, 0, common)))

    def keys(self, max_lag_ms: int) -> list[bytes]:
        return keys_of(self.followed.rows_within(max_lag_ms))

    def refused(self, max_lag_ms: int) -> dict[str, object]:
        with pytest.raises(Unavailable) as refusal:
            self.followed.rows_within(max_lag_ms)
        assert refusal.value.code == "not-ready"
        return {"lag_ms": None, **refusal.value.facts}


def keys_of(rows: CopyRows) -> list[bytes]:
    keys: list[bytes] = rows.reader.get([b"k1", b"k2", b"k3"]).column("_key").to_pylist()
    return keys


def test_given_no_position_when_read_then_it_is_refused_whatever_the_age() -> None:
    bench = Bench()

    assert bench.refused(3_600_000)["lag_ms"] is None


def test_given_a_position_when_read_then_rows_are_those_that_are_common_and_no_more() -> None:
    bench = Bench()
    bench.followed.tell(CommonAt(1, 1, 9_500))

    assert bench.keys(max_lag_ms=500) == [b"k1"], "k2 may still be cut"
    assert bench.refused(499)["lag_ms"] == 500
    bench.clock.advance(1)
    assert bench.refused(500)["lag_ms"] == 501


def test_given_a_position_that_it_has_not_reached_when_read_then_the_one_before_counts() -> None:
    bench = Bench()
    bench.followed.tell(CommonAt(1, 1, 9_000))
    bench.followed.tell(CommonAt(1, 2, 9_900))

    assert bench.refused(999)["lag_ms"] == 1_000
    bench.hear(common=2)

    assert bench.keys(max_lag_ms=100) == [b"k1", b"k2"]


def test_given_a_copy_that_is_cut_off_when_time_passes_then_it_answers_nothing_older() -> None:
    bench = Bench()
    bench.followed.tell(CommonAt(1, 1, 10_000))
    assert bench.keys(max_lag_ms=2_000) == [b"k1"]

    bench.clock.advance(2_001)

    assert bench.refused(2_000)["lag_ms"] == 2_001


def test_given_another_leader_when_followed_then_the_copy_waits_for_its_positions() -> None:
    bench = Bench()
    other = copy_at(bench.disk, C)
    other.take(sent(bench.region, 0, 2))
    other.close()
    new = Region.open(place(bench.disk, C), order(2))
    write(new, "s-3", {b"k3": (3, "x")})
    bench.followed.tell(CommonAt(1, 1, 9_900))

    asyncio.run(bench.followed.take(B, sent(new, 2, common=3)))

    assert bench.refused(3_600_000)["lag_ms"] is None
    bench.followed.tell(CommonAt(2, 3, 9_950))
    assert bench.keys(max_lag_ms=50) == [b"k1", b"k2", b"k3"]


def test_given_rows_that_are_read_when_the_copy_is_closed_then_they_are_answered_no_more() -> None:
    bench = Bench()
    bench.followed.tell(CommonAt(1, 1, 10_000))
    rows = bench.followed.rows_within(10)

    asyncio.run(bench.followed.close())

    assert bench.refused(3_600_000)["lag_ms"] is None
    with pytest.raises(Unavailable):
        keys_of(rows)


def test_given_a_copy_that_started_again_when_a_reader_comes_then_it_opens_by_itself() -> None:
    bench = Bench()
    bench.hear(common=2)
    asyncio.run(bench.followed.close())
    bench.followed = bench.follows(CopyRegion(place(bench.disk, B), REGION_ID))
    bench.followed.tell(CommonAt(1, 2, 9_900))
    asyncio.run(bench.followed.open_for_readers())
    assert bench.followed.copy.rows is None, "nobody has asked"
    assert bench.refused(3_600_000)["lag_ms"] is None

    asyncio.run(bench.followed.open_for_readers())

    assert bench.keys(max_lag_ms=100) == [b"k1", b"k2"]


def test_given_a_copy_that_fetches_files_when_a_reader_comes_then_the_fetch_goes_on() -> None:
    """Its rows are too old to be read, and to open it would end the fetch."""
    bench = Bench()
    bench.followed.tell(CommonAt(1, 1, 9_900))
    bench.region.maintenance.flush(to_end=True)
    write(bench.region, "s-3", {b"k3": (3, "x")})
    bench.region.maintenance.flush(to_end=True)
    asyncio.run(bench.followed.take(B, sent(bench.region, 3, common=3)))
    need = bench.followed.need
    assert need is not None
    assert bench.refused(1_000)["lag_ms"] is None

    asyncio.run(bench.followed.open_for_readers())

    assert bench.followed.need == need
