"""A version that the stream of the catalog does not bring is known all the same."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.catalog.feed import Feed, Servers
from dataplane.frontend.lease.holder import HolderLoop, HolderPorts
from dataplane.frontend.lease.latency import Latency
from dataplane.frontend.lease.transactions import Transactions
from metasrv_base.wire.frontend.feed import ALIVE_MS, FeedAlive, SnapshotLine
from tests.dataplane.frontend.catalog.feed_server import URLS, Lines
from tests.dataplane.frontend.leader import ACKNOWLEDGE_MS, LEASE_MS, FakeLeader
from tests.dataplane.frontend.tables import feed_table
from tests.fakes.chance import SeededRng
from tests.sim.loop import WORLD, SimClock, SimLoop, run


@dataclass
class Stuck(httpx.AsyncByteStream):
    """A server that lives, and stays at one version for ever."""

    clock: SimClock
    version: int

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in Lines([snapshot(self.version)]):
            yield line
        while True:
            await self.clock.sleep_ms(ALIVE_MS)
            async for line in Lines([FeedAlive(version=self.version, leader=None, is_stale=False)]):
                yield line


@dataclass
class OneAfterTheOther(httpx.AsyncBaseTransport):
    """The first server is stuck at version 1, the second at version 2."""

    clock: SimClock
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.host, request.url.params.get("from")))
        return httpx.Response(200, stream=Stuck(self.clock, len(self.asked)))


def snapshot(version: int) -> SnapshotLine:
    return SnapshotLine(version=version, tables=(feed_table(schema_version=version),), is_last=True)


@pytest.mark.case("online 5")
def test_given_a_version_that_is_not_streamed_then_it_is_known_a_part_of_a_lease_later() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        leader, servers = FakeLeader(clock), OneAfterTheOther(clock)
        catalog = LiveCatalog(lambda: holder.tell())
        feed = Feed(catalog, Servers(URLS, transport=servers), clock, SeededRng())
        world = HolderPorts(leader, clock, feed.reload, lambda urls: None)
        holder = HolderLoop("fe-1", "http://127.0.0.1:2", catalog, Transactions(), Latency(), world)
        tasks = [loop.spawn(WORLD, work) for work in (feed.run(), holder.run())]
        await clock.sleep_ms(ALIVE_MS // 2)
        holder.check()

        leader.version = 2
        published_ms = clock.mono_ms()
        await catalog.reached(2)
        late_ms = clock.mono_ms() - published_ms
        is_over = holder.is_over
        await clock.sleep_ms(LEASE_MS)

        assert late_ms <= 3 * ACKNOWLEDGE_MS
        assert not is_over
        assert servers.asked == [("one", None), ("two", None)]
        assert leader.acknowledgements[-1][1].version == 2
        holder.check()
        for task in tasks:
            task.cancel()

    run(main, 1)
