"""Senders of records: to a copy at a new address, and to one that is told what is common."""

import asyncio

from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.datanode.copies.senders import TELL_MS, CopySenders
from dataplane.region.following.append_body import AppendPart, decode_append
from dataplane.region.following.leading import lead_new
from metasrv_base.address_book import AddressBook
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.appends import AppendAnswer, AppendedPart
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from tests.dataplane.region.rig import SPEC, A, B, batch, header, place
from tests.fakes.clock import FakeClock

OLD, NEW = "http://old", "http://new"
COPIES = RegionCopies(
    version=1,
    min_in_sync=1,
    members=[
        OrderedCopy(node="dn-1", root=A, role="leader"),
        OrderedCopy(node="dn-2", root=B, role="learner", address=OLD),
    ],
)
IN_SYNC = RegionCopies(
    version=1,
    min_in_sync=2,
    members=[
        OrderedCopy(node="dn-1", root=A, role="leader"),
        OrderedCopy(node="dn-2", root=B, role="in-sync", address="http://dn-2"),
    ],
)
WRITES = 20


class Network:
    """Nobody answers; the addresses that were asked are kept."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.news = asyncio.Event()

    async def append(self, address: str, body: bytes) -> AppendAnswer:
        self.asked.append(address)
        self.news.set()
        raise Unavailable(what=address)

    async def until(self, address: str) -> None:
        """Waits until it is asked."""
        while self.asked[-1:] != [address]:
            self.news.clear()
            await self.news.wait()


async def test_given_a_copy_that_moved_when_its_address_is_told_then_no_other_is_asked() -> None:
    network, clock, book = Network(), FakeClock(), AddressBook()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        senders = CopySenders(network, clock, group.create_task)
        clocks = LeaderClocks(clock.mono_ms, lambda: True)
        led = LedRegion(lead_new(place(), SPEC, 1), COPIES, clocks, senders.notify, book)
        led.tell_senders()
        await network.until(OLD)

        book.set("dn-2", NEW)
        led.tell_senders()
        await network.until(NEW)
        before = len(network.asked)
        for _ in range(5):
            clock.advance(10_000)
            led.tell_senders()
            network.asked.clear()
            await network.until(NEW)
            assert OLD not in network.asked
        senders.close()

    assert before
    assert list(led.receivers.values()) == [NEW]


class TakingCopy:
    """A copy that takes whatever it is sent."""

    def __init__(self) -> None:
        self.durable = 0
        self.parts: list[AppendPart] = []
        self.news = asyncio.Event()

    async def append(self, address: str, body: bytes) -> AppendAnswer:
        (part,) = decode_append(body)
        self.parts.append(part)
        for group in part.records.groups:
            self.durable = group.position.sequence
        self.news.set()
        taken = AppendedPart(region_id=str(part.region_id), durable=self.durable)
        return AppendAnswer(parts=[taken])

    async def until_told(self, common: int) -> None:
        while self.parts[-1].records.common < common:
            self.news.clear()
            await self.news.wait()


async def test_given_writes_one_by_one_when_copied_then_only_the_last_costs_two_requests() -> None:
    copy, clock = TakingCopy(), FakeClock()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        senders = CopySenders(copy, clock, group.create_task)
        clocks = LeaderClocks(clock.mono_ms, lambda: True)
        led = LedRegion(lead_new(place(), SPEC, 1), IN_SYNC, clocks, senders.notify)
        await led.run()
        for number in range(WRITES):
            row = header(f"s-{number}"), batch({f"k{number}".encode(): (number, "x")})
            await led.apply([row])
        written = len(copy.parts)
        clock.advance(TELL_MS)
        await copy.until_told(led.view.common)
        senders.close()

    assert written == 1 + WRITES  # the first asks where its log ends
    assert len(copy.parts) == written + 1
    assert not copy.parts[-1].records.groups
