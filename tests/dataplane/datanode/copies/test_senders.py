"""Senders of records, whose copy has another address than the last order named."""

import asyncio

from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.datanode.copies.senders import CopySenders
from dataplane.region.following.leading import lead_new
from metasrv_base.address_book import AddressBook
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.appends import AppendAnswer
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from tests.dataplane.region.rig import SPEC, A, B, place
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
