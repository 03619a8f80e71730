"""The stream of the catalog in virtual time: servers that end, err, fall silent or lag behind."""

import asyncio
from dataclasses import dataclass, field

import httpx
import pytest

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.catalog.feed import SILENT_MS, Feed, Servers
from metasrv_base.wire.frontend.feed import FeedAlive, Goaway, SnapshotLine, Update
from tests.dataplane.frontend.catalog.feed_server import URLS, Lines, Script
from tests.dataplane.frontend.tables import feed_table
from tests.fakes.chance import SeededRng
from tests.sim.loop import WORLD, SimClock, SimLoop, run

HANGS = "it says no more"
FIRST = SnapshotLine(version=1, tables=(feed_table(),), is_last=True)


ALIVE = FeedAlive(version=2, leader=None, is_stale=False)


def update(version: int) -> Update:
    return Update(version=version, tables=(feed_table(schema_version=version),))


@dataclass
class Scripted(httpx.AsyncBaseTransport):
    """One script, or status, for each request in turn; after the last nobody says anything."""

    scripts: list[Script | int]
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Server, and from which version."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.host, request.url.params.get("from")))
        script = self.scripts.pop(0) if self.scripts else [HANGS]
        if isinstance(script, int):
            return httpx.Response(script)
        return httpx.Response(200, stream=Lines(script))


@dataclass
class Seen:
    version: int | None
    asked: list[tuple[str, str | None]]


def play(*scripts: Script | int, wait_ms: int = 2_000, reload: bool = False) -> Seen:
    """Plays *scripts*, waits, and returns the catalog and the servers asked; *reload* waits half as
    long again."""

    async def main(loop: SimLoop) -> Seen:
        catalog, clock, servers = LiveCatalog(), SimClock(loop), Scripted(list(scripts))
        feed = Feed(catalog, Servers(URLS, transport=servers), clock, SeededRng())
        task = loop.spawn(WORLD, feed.run())
        await clock.sleep_ms(wait_ms)
        if reload:
            feed.reload()
            await clock.sleep_ms(wait_ms)
        task.cancel()
        await asyncio.wait([task])
        return Seen(catalog.version, servers.asked)

    return run(main, seed=1)


@pytest.mark.case("greptime 114")
def test_given_a_stream_when_it_goes_on_then_each_version_is_applied() -> None:
    assert play([FIRST, update(2), ALIVE, update(3), HANGS]).version == 3


def test_given_a_stream_that_ends_then_the_next_server_is_asked_from_what_is_known() -> None:
    for end in ([], [Goaway()]):
        seen = play([FIRST, update(2), *end], [update(3), HANGS])

        assert seen.version == 3
        assert seen.asked == [("one", None), ("two", "2")]


def test_given_servers_that_refuse_then_they_are_asked_in_turn_until_one_streams() -> None:
    seen = play(503, 500, 503, [FIRST, HANGS])

    assert seen.version == 1
    assert [host for host, _ in seen.asked] == ["one", "two", "one", "two"]


def test_given_servers_that_were_replaced_then_those_of_before_are_asked_no_more() -> None:
    async def main(loop: SimLoop) -> list[str]:
        clock, servers = SimClock(loop), Scripted([503] * 8)
        feed = Feed(LiveCatalog(), Servers(URLS[:1], transport=servers), clock, SeededRng())
        for number in range(100):
            feed.learn([f"http://m-{number}:1"])
        task = loop.spawn(WORLD, feed.run())
        await clock.sleep_ms(2_000)
        task.cancel()
        await asyncio.wait([task])
        return [host for host, _ in servers.asked[:4]]

    assert run(main, seed=1) == ["one", "m-99", "one", "m-99"]


def test_given_a_server_that_falls_silent_then_another_is_asked() -> None:
    seen = play([FIRST, HANGS], [update(2), HANGS], wait_ms=SILENT_MS + 1_000)

    assert seen.version == 2
    assert seen.asked == [("one", None), ("two", "1")]


def test_given_a_server_that_does_not_hear_the_store_then_another_is_asked() -> None:
    stale = ALIVE.model_copy(update={"is_stale": True})
    seen = play([FIRST, stale, HANGS], [update(2), HANGS])

    assert seen.version == 2
    assert seen.asked == [("one", None), ("two", "1")]


def test_given_a_gap_or_nonsense_then_it_is_not_passed_over() -> None:
    for wrong in (update(3), SnapshotLine(version=0, tables=(), is_last=True)):
        seen = play([FIRST, wrong], [update(2), HANGS])

        assert seen.version == 2
        assert seen.asked[1] == ("two", "1")


def test_given_half_a_snapshot_when_the_stream_ends_then_it_never_was() -> None:
    half = FIRST.model_copy(update={"is_last": False})

    assert play([half], [HANGS]).version is None
    assert play([half], [FIRST, HANGS]).version == 1


def test_given_a_reload_when_the_next_line_comes_then_a_snapshot_is_read_elsewhere() -> None:
    ahead = SnapshotLine(version=5, tables=(feed_table(schema_version=5),), is_last=True)
    seen = play([FIRST, HANGS], [ahead, HANGS], wait_ms=SILENT_MS - 500, reload=True)

    assert seen.version == 5
    assert seen.asked == [("one", None), ("two", None)]


def test_given_a_snapshot_in_parts_when_each_is_read_then_it_is_told_and_no_other_line_is() -> None:
    told: list[int | None] = []
    catalog = LiveCatalog(on_part=lambda: told.append(catalog.version))

    for line in (FIRST.model_copy(update={"is_last": False}), FIRST, update(2), ALIVE):
        catalog.take(line)

    assert told == [None, 1]
