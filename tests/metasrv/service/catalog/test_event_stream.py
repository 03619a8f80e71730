"""The stream of events: nothing twice, no version passed over without a reset, at no cost."""

import asyncio
from dataclasses import replace

import pytest

from keys.catalog.follower import VERSIONS_KEPT
from keys.model.log import TableAltered, TableCreated
from metasrv.service.catalog import event_stream
from metasrv.service.catalog.event_stream import begun
from metasrv.service.events import event_lines
from metasrv.service.events.event_filter import EventFilter
from metasrv.service.past.catch_up import PIECE_BYTES
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Unavailable
from metasrv_base.wire.events.events import EventsReset, VersionEvents
from tests.keys.catalog.logs import first_update, update
from tests.metasrv.api.counted import CountedKv
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import leader, state_of
from tests.metasrv.service.catalog.event_watcher import (
    ALL,
    Watcher,
    follow_any_log,
    fresh,
)
from tests.procedures.harness.tables import table_info, table_route


@pytest.fixture(autouse=True)
def _beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher that asks for more is told its position at once."""
    monkeypatch.setattr(event_stream, "BEAT_MS", 0)


def make(one: ServerState, versions: int) -> None:
    """A table, then its other versions."""
    info = table_info(1024, "t", 1)
    for number in range(versions):
        version = one.follower.catalog.version + 1
        new = info.model_copy(update={"version": number + 1})
        made = TableCreated(info=info, route=table_route(1024, ("dn-1",)))
        entry = TableAltered(info=new) if number else made
        one.follower.log.offer(update(version, entry), version)


@pytest.mark.parametrize("seed", range(4))
async def test_given_any_log_when_watchers_come_and_go_then_each_has_what_reads_show(
    seed: int,
) -> None:
    await follow_any_log(seed)


async def test_given_a_watcher_without_a_position_then_it_is_told_where_it_begins() -> None:
    one = fresh()
    make(one, 3)
    watcher = await Watcher.at(one)
    first = await watcher.next()

    make_more(one)
    await watcher.next()

    assert first == 4
    assert watcher.versions == [5]


def make_more(one: ServerState) -> None:
    version = one.follower.catalog.version + 1
    info = table_info(1024, "t", 1).model_copy(update={"version": version})
    one.follower.log.offer(update(version, TableAltered(info=info)), version)


@pytest.mark.case("catalog 70")
async def test_given_zero_when_resumed_then_every_version_is_told_once_and_in_order() -> None:
    one = fresh()
    make(one, 40)

    watcher = await Watcher.at(one, 0)
    await watcher.until(41)

    assert watcher.versions == list(range(1, 42))


async def test_given_the_newest_when_resumed_then_nothing_is_told_again() -> None:
    one = fresh()
    make(one, 3)

    watcher = await Watcher.at(one, 4)
    await watcher.until(4)

    assert watcher.told == [4]


@pytest.mark.parametrize("garbage", ["", "x", "-1", "1.0", "01", "9" * 20, "٣", "1\n"])
@pytest.mark.case("input 65")
async def test_given_an_id_that_is_no_version_when_resumed_then_reset_and_it_goes_on(
    garbage: str,
) -> None:
    one = fresh()
    make(one, 3)
    watcher = await Watcher.at(one, last_id=garbage)
    make_more(one)

    await watcher.until(5)

    assert watcher.told[0] == EventsReset(version=4, reason="unknown-id")
    assert watcher.versions == [5]


async def test_given_both_then_last_event_id_goes_before_since() -> None:
    one = fresh()
    make(one, 5)

    watcher = await Watcher.at(one, since=0, last_id="4")
    await watcher.until(6)

    assert watcher.versions == [5, 6]


async def test_given_a_version_that_was_never_when_the_store_is_heard_then_reset() -> None:
    async with leader() as one:
        one.state.facts = replace(one.state.facts, store_deadline_ms=20)
        async with asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(_look(one.state))
            watch = await begun(one.state, ALL, one.version + 7, None)
            looking.cancel()

        assert watch.reset == EventsReset(version=one.version, reason="ahead")


async def _look(one: ServerState) -> None:
    while True:
        await one.follower.log.look()
        await asyncio.sleep(0)


async def test_given_a_version_that_comes_late_when_resumed_there_then_no_reset() -> None:
    one = fresh()
    async with asyncio.TaskGroup() as tasks:
        beginning = tasks.create_task(Watcher.at(one, 3))
        await asyncio.sleep(0)
        make(one, 3)
        watcher = await beginning

    await watcher.until(4)

    assert watcher.told[0] != EventsReset(version=4, reason="ahead")
    assert watcher.versions == [4]


async def test_given_a_silent_store_when_resumed_in_the_future_then_another_may_know() -> None:
    one = fresh()
    one.facts = replace(one.facts, store_deadline_ms=5)

    with pytest.raises(Unavailable) as refused:
        await begun(one, ALL, 99, None)

    assert refused.value.code == "stale"


@pytest.mark.slow
async def test_given_a_watcher_that_reads_slowly_then_reset_and_the_end_and_no_queue() -> None:
    one = fresh()
    watcher = await Watcher.at(one)
    await watcher.until(1)
    make(one, 3)
    await watcher.next()
    encoded = one.events.encoded

    make_on(one, VERSIONS_KEPT + 10)
    told = await watcher.rest()

    assert told[-1] == EventsReset(version=one.follower.catalog.version, reason="behind")
    assert one.events.encoded - encoded <= 1


def make_on(one: ServerState, versions: int) -> None:
    for _ in range(versions):
        make_more(one)


async def test_given_watchers_when_versions_come_then_each_is_encoded_once_and_no_call() -> None:
    clock = ShiftedClock()
    kv = CountedKv(clock)
    one = state_of("ms-1", kv, clock)
    one.follower.log.loaded.set()
    one.follower.log.offer(first_update(), 1)
    one.follower.log.heard_at_ms = clock.mono_ms()
    wanted = [ALL, EventFilter(schema="public"), EventFilter(table="x")]
    watchers = [await Watcher.at(one, wanted=wanted[number % 3]) for number in range(99)]
    for watcher in watchers:
        await watcher.until(1)
    before = kv.counts.calls

    make(one, 20)
    for watcher in watchers:
        await watcher.until(21)

    assert kv.counts.calls == before
    assert one.events.encoded == 20
    assert [watcher.versions for watcher in watchers[:3]] == [list(range(2, 22))] * 2 + [[]]
    sent = {id(block) for block in _blocks_of(one, 21, ALL)}
    assert len(sent) == 1


def _blocks_of(one: ServerState, version: int, wanted: EventFilter) -> list[bytes]:
    before, made = one.follower.at(version - 1), one.follower.update(version)
    assert before is not None
    assert made is not None
    return [one.events.version(before, made).block(wanted) for _ in range(2)]


async def test_given_a_quiet_catalog_then_signs_of_life_unless_the_store_is_silent() -> None:
    one = fresh()
    watcher = await Watcher.at(one)
    told = [await watcher.next() for _ in range(3)]

    one.facts = replace(one.facts, lease_ms=0)
    one.follower.log.heard_at_ms = None
    new = await Watcher.at(one)
    first = await new.next()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(new.next())
        for _ in range(20):
            await asyncio.sleep(0)
        is_silent = not waiting.done()
        make(one, 1)
        block = await waiting

    assert told == [1, 1, 1]
    assert first == 1
    assert is_silent
    assert isinstance(block, VersionEvents)


async def test_given_streams_when_the_server_stops_then_goaway_at_once() -> None:
    one = fresh()
    make(one, 5)
    begun_one, new = await Watcher.at(one), await Watcher.at(one, 0)
    await begun_one.next()

    one.stop()
    told = [await begun_one.rest(), await new.rest()]

    assert [list(found)[-1] for found in told] == ["goaway", "goaway"]


async def test_given_a_watcher_that_waits_when_the_server_stops_then_goaway() -> None:
    one = fresh()
    watcher = await Watcher.at(one)
    await watcher.next()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(watcher.next())
        await asyncio.sleep(0)

        one.stop()

        assert await waiting == "goaway"


async def test_given_a_large_version_when_sent_then_in_pieces_with_turns_for_others() -> None:
    one = fresh()
    entries = [
        TableCreated(info=table_info(2_000 + n, f"t{n}", 1), route=table_route(2_000 + n, ("d",)))
        for n in range(100)
    ]
    applied = one.follower.log.offer(update(2, *entries), 2)
    assert applied is not None, "a version of many entries is applied in turns"
    await one.follower.log._settle()
    others = 0

    async def run() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run())
        watcher = await Watcher.at(one, 1)
        pieces = [await anext(watcher.stream)]
        while b"\n\n" not in pieces[-1]:
            pieces.append(await anext(watcher.stream))
        running.cancel()

    assert max(map(len, pieces)) <= PIECE_BYTES
    assert len(pieces) > 1
    assert others >= 100 // event_lines.EVENTS_OF_A_TURN


async def test_given_many_large_versions_when_encoded_then_few_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_lines, "BYTES_KEPT", 10_000)
    one = fresh()
    make(one, 50)

    watcher = await Watcher.at(one, 0)
    await watcher.until(51)

    kept = one.events._versions
    assert 1 <= len(kept) < 15
    assert sum(each.bytes for each in kept.values()) < 12_000
