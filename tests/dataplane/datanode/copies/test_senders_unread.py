"""Records of many regions to one node: a region whose log cannot be read holds up no other."""

import asyncio

import pytest

from dataplane.datanode.copies import senders
from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.datanode.copies.senders import CopySenders
from dataplane.region.copies.leader_view import CopyName
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following import leader_stream
from dataplane.region.following.append_body import decode_append
from dataplane.region.following.leading import lead_new
from dataplane.region.format.names import segment_name, segments
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.appends import AppendAnswer, AppendedPart
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from tests.dataplane.region.rig import SPEC, A, B, batch, header, place
from tests.fakes.clock import FakeClock

SECOND = CopyName("dn-2", B)
COPIES = RegionCopies(
    version=1,
    min_in_sync=1,
    members=[
        OrderedCopy(node="dn-1", root=A, role="leader", address="http://dn-1"),
        OrderedCopy(node="dn-2", root=B, role="in-sync", address="http://dn-2"),
    ],
)


class Peer:
    """Implements AppendPort: a node whose copies have a log that is empty, until they have taken
    all that was sent to them."""

    def __init__(self) -> None:
        self.has: dict[int, int] = {}

    async def append(self, address: str, body: bytes) -> AppendAnswer:
        parts = decode_append(body)
        for part in parts:
            sequences = [group.position.sequence for group in part.records.groups]
            self.has[part.region_id] = max([self.has.get(part.region_id, 0), *sequences])
        return AppendAnswer(
            parts=[
                AppendedPart(region_id=str(part.region_id), durable=self.has[part.region_id])
                for part in parts
            ]
        )


class Bench:
    """Two regions with two records each, which a copy lacks that has followed their epoch."""

    def __init__(self) -> None:
        self.clock, self.peer, self.news = FakeClock(), Peer(), asyncio.Event()
        self.disks = [MemoryDisk(MemoryStore()), MemoryDisk(MemoryStore())]
        self.led = [self._led(number, disk) for number, disk in enumerate(self.disks)]

    def _led(self, number: int, disk: MemoryDisk) -> LedRegion:
        spec = SPEC.model_copy(update={"region_id": SPEC.region_id + number})
        clocks = LeaderClocks(self.clock.mono_ms, lambda: True)
        led = LedRegion(lead_new(place(disk), spec, 1), COPIES, clocks, lambda _: self.news.set())
        led.view.acknowledged(SECOND, 1, 0, 0)
        for row in range(2):
            rows = [(header(f"s-{row}"), batch({f"k{row}".encode(): (row, "x")}))]
            ordered = led.region.writer.order(rows)
            led.region.writer.settle(ordered)
            assert ordered.logged is not None
            led.stream.appended(ordered.logged, 0)
        return led

    async def until_it_has(self, led: LedRegion) -> None:
        """Sends until the copy of a region has all of it."""
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            sending = CopySenders(self.peer, self.clock, tasks.create_task)
            for each in self.led:
                sending.notify(each)
            while led.view.durable_at(SECOND) < led.view.end:
                self.news.clear()
                await self.news.wait()
            sending.close()


async def test_given_a_log_that_cannot_be_read_when_others_are_due_then_their_copies_get_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_stream, "RECENT_BYTES_MAX", 1)
    bench = Bench()
    damaged, whole = bench.led
    (name,) = segments(bench.disks[0].list(A))
    read, segment = bench.disks[0].read, f"{A}/{segment_name(name)}"

    def fails(path: str, offset: int, length: int) -> bytes:
        if path == segment:
            raise Unavailable("not-ready", path=path, errno="EIO")
        return read(path, offset, length)

    monkeypatch.setattr(bench.disks[0], "read", fails)

    await bench.until_it_has(whole)

    assert damaged.view.durable_at(SECOND) == 0
    assert damaged.ended is None


async def test_given_an_answer_that_lacks_a_region_then_nothing_of_it_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(senders, "LATER", Backoff(first_ms=0, max_ms=0))
    bench = Bench()
    whole, answers = bench.led[1], iter([True])
    append = bench.peer.append

    async def cut(address: str, body: bytes) -> AppendAnswer:
        answer = await append(address, body)
        return AppendAnswer(parts=answer.parts[:1]) if next(answers, False) else answer

    bench.peer.append = cut  # type: ignore[method-assign]

    await bench.until_it_has(whole)

    assert whole.ended is None
