"""The memory of a leader for its copies, while these have all records, and a fault of memory."""

import pytest

from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.region.copies.leader_view import NOTHING, CopyName
from dataplane.region.following import leader_stream
from dataplane.region.following.leading import LedOpening, lead_new
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from tests.dataplane.datanode.copies.fetch_bench import copies
from tests.dataplane.region.rig import SPEC, A, B, C, batch, header, place

SECOND, THIRD = CopyName("dn-2", B), CopyName("dn-3", C)
COPIES = RegionCopies(
    version=1,
    min_in_sync=1,
    members=[
        OrderedCopy(node="dn-1", root=A, role="leader"),
        OrderedCopy(node="dn-2", root=B, role="in-sync"),
        OrderedCopy(node="dn-3", root=C, role="learner"),
    ],
)


class Bench:
    """A leader of one copy in sync and a learner, which answer when they are told to."""

    def __init__(self, rows: int) -> None:
        self.now_ms = 0
        clocks = LeaderClocks(lambda: self.now_ms, lambda: True)
        self.led = LedRegion(lead_new(place(), SPEC, 1), COPIES, clocks, lambda _: None)
        for copy in (SECOND, THIRD):
            self.answer(copy, 0)
        for number in range(1, rows + 1):
            self.write(number)

    def write(self, number: int) -> None:
        rows = [(header(f"s-{number}"), batch({f"k{number}".encode(): (number, "x")}))]
        ordered = self.led.region.writer.order(rows)
        self.led.region.writer.settle(ordered)
        assert ordered.logged is not None
        self.led.stream.appended(ordered.logged, 0)

    def answer(self, copy: CopyName, durable: int) -> None:
        self.led.answered(copy, self.led.stream.request(copy), durable)

    @property
    def kept(self) -> list[int]:
        """The records that the leader has in memory, by sequence."""
        return [record.position.sequence for record in self.led.stream._recent]

    @property
    def segments(self) -> set[CopyName]:
        """The copies for which a segment of the log is in memory."""
        return set(self.led.stream._tails)


def test_given_records_that_all_copies_have_then_none_is_kept_in_memory() -> None:
    bench = Bench(rows=3)
    bench.answer(SECOND, 3)
    assert bench.kept == [1, 2, 3], "the learner is sent them from memory"

    bench.answer(THIRD, 2)
    assert bench.kept == [3]
    bench.answer(THIRD, 3)

    assert bench.kept == []
    bench.write(4)
    assert bench.kept == [4]


def test_given_a_learner_that_is_gone_then_nothing_is_kept_for_it() -> None:
    bench = Bench(rows=2)
    bench.now_ms = 60_000
    bench.answer(SECOND, 2)
    assert bench.led.view.ask_again(bench.now_ms)
    assert bench.led.view.durable_at(THIRD) == NOTHING
    bench.write(3)

    bench.answer(SECOND, 3)

    assert bench.kept == []


def test_given_a_learner_that_catches_up_from_the_log_then_its_segment_is_kept_till_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_stream, "RECENT_BYTES_MAX", 1)
    bench = Bench(rows=3)
    bench.answer(SECOND, 3)

    bench.answer(THIRD, 1)
    assert THIRD in bench.segments
    assert bench.kept == [3], "it is sent the last one from memory"
    bench.answer(THIRD, 3)

    assert bench.segments == set()
    assert bench.kept == []


async def test_given_a_fault_when_the_opening_is_counted_then_the_region_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: LedOpening) -> None:
        raise MemoryError

    monkeypatch.setattr(LedOpening, "count", fail)
    clocks, ends = LeaderClocks(lambda: 0, lambda: True), list[MetaError]()
    led = LedRegion(lead_new(place(), SPEC, 1), copies(), clocks, lambda _: None)
    led.on_end = ends.append

    await led.run()

    assert ends == [led.ended]
    with pytest.raises(Unavailable):
        led.must_be_readable()
