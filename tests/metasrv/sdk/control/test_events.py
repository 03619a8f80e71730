"""`client.events`: once each, in order, whatever servers and connections do."""

import asyncio

import httpx
import pytest

from metasrv.sdk.control import events
from metasrv.sdk.portal import Portal
from metasrv.sdk.sync_events import SyncEventStream
from metasrv_base.errors import Corrupt, Refused, Unavailable
from metasrv_base.wire.events.events import EventsReset
from metasrv_base.wire.http import sse
from tests.metasrv.sdk.control.event_servers import (
    EventServers,
    Part,
    position,
    reset,
    version,
    versions,
)


async def test_given_a_stream_that_breaks_anywhere_then_each_event_comes_once() -> None:
    """A version is there whole or not at all, so nothing of it is told twice."""
    whole = position(4) + version(5) + version(6, 3) + version(7)
    for cut in range(0, len(whole) + 1, 7):
        first: list[Part] = [whole[:cut], httpx.ReadError("reset")]
        servers = EventServers({"a": [first, [whole]], "b": [[whole], [whole]]})
        stream = servers.stream(4)

        assert await versions(stream, 5) == [5, 6, 6, 6, 7]
        assert servers.asked[0] == ("a", "4")
        if len(servers.asked) > 1:
            assert servers.asked[1][0] == "b"
        await stream.close()


async def test_given_no_version_to_begin_with_then_it_resumes_from_where_it_began() -> None:
    servers = EventServers({"a": [[position(4)]], "b": [[position(4), version(5)]]})
    stream = servers.stream()

    await stream.begin()
    begun = stream.version
    told = await versions(stream, 1)

    assert (begun, told) == (4, [5])
    assert servers.asked == [("a", None), ("b", "4")]
    await stream.close()


async def test_given_a_server_that_sends_a_version_again_then_it_is_not_told_twice() -> None:
    servers = EventServers({"a": [[version(5) + version(5), version(4), version(6)]]})
    stream = servers.stream(4)

    assert await versions(stream, 2) == [5, 6]
    await stream.close()


async def test_given_a_server_that_passes_a_version_over_then_corrupt_and_none_after_it() -> None:
    servers = EventServers({"a": [[version(5) + version(7)]]})
    stream = servers.stream(4)

    with pytest.raises(Corrupt):
        await versions(stream, 2)

    assert stream.version == 5
    await stream.close()


async def test_given_a_filter_then_versions_may_be_passed_over_and_the_query_says_it() -> None:
    servers = EventServers({"a": [[version(5) + position(8) + version(9)]]})
    stream = servers.stream(4, filters={"table": "t", "table_id": 7, "schema": None})

    assert await versions(stream, 2) == [5, 9]
    assert servers.queries == ["table=t&table_id=7"]
    await stream.close()


async def test_given_a_reset_then_it_is_told_and_the_stream_goes_on_behind_it() -> None:
    servers = EventServers({"a": [[reset(40)]], "b": [[version(41)]]})
    stream = servers.stream(4)

    first = await anext(stream)
    told = await versions(stream, 1)

    assert first == EventsReset(version=40, reason="expired")
    assert told == [41]
    assert servers.asked == [("a", "4"), ("b", "40")]
    await stream.close()


async def test_given_a_server_that_goes_or_refuses_then_the_next_is_asked() -> None:
    full = Unavailable("not-ready", what="another event stream")
    servers = EventServers({"a": [full, [version(6)]], "b": [[version(5), sse.GOAWAY]]})
    stream = servers.stream(4)

    assert await versions(stream, 2) == [5, 6]
    assert [host for host, _ in servers.asked] == ["a", "b", "a"]
    await stream.close()


async def test_given_a_silent_server_then_another_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SILENT_S", 0.01)
    servers = EventServers({"a": [[position(4), asyncio.Event()]], "b": [[version(5)]]})
    stream = servers.stream(4)

    assert await versions(stream, 1) == [5]
    await stream.close()


async def test_given_no_server_for_a_while_then_unavailable_and_the_next_call_tries_again() -> None:
    servers = EventServers({})
    stream = servers.stream(4)

    with pytest.raises(Unavailable):
        await anext(stream)
    servers.scripts = {"b": [[version(5)]]}

    assert await versions(stream, 1) == [5]
    await stream.close()


async def test_given_a_request_that_makes_no_sense_then_refused_at_once() -> None:
    servers = EventServers({"a": [Refused("invalid-request", pointer="/table")]})
    stream = servers.stream(4, patience_ms=60_000)

    with pytest.raises(Refused):
        await anext(stream)

    assert len(servers.asked) == 1
    await stream.close()


async def test_given_a_call_that_is_cancelled_then_nothing_is_lost() -> None:
    told = asyncio.Event()
    servers = EventServers(
        {"a": [[version(5), asyncio.Event()]], "b": [[told, version(6) + version(7)]]}
    )
    stream = servers.stream(4)
    await anext(stream)

    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(stream)
        servers.scripts["b"].append([told, version(6) + version(7)])
        servers.scripts["a"].append([told, version(6) + version(7)])
    told.set()

    assert await versions(stream, 2) == [6, 7]
    assert {last for _, last in servers.asked[1:]} == {"5"}
    await stream.close()


async def test_given_an_end_then_the_iteration_is_over_there() -> None:
    servers = EventServers({"a": [[version(5) + version(6) + position(8) + version(9)]]})

    told = [event.version async for event in servers.stream(4, until=8)]

    assert told == [5, 6]


async def test_given_what_no_server_of_ours_sends_then_corrupt() -> None:
    for text in (b"event: version\ndata: {}\n\n", b"id: x\n\n", b"data: \xff\n\n"):
        stream = EventServers({"a": [[text]]}).stream(4)

        with pytest.raises(Corrupt):
            await anext(stream)
        await stream.close()


def test_given_plain_code_then_it_iterates_over_the_same() -> None:
    portal = Portal()
    servers = EventServers({"a": [[position(4)]], "b": [[version(5) + reset(9)], [version(10)]]})
    told = []
    with SyncEventStream(portal, servers.stream(until=10)) as stream:
        begun = stream.version
        told += [event.type for event in stream]
    portal.close()

    assert begun == 4
    assert told == ["catalog.created", "reset", "catalog.created"]
