"""Watchers that resume in the log: each version once and in order, into the live ones."""

from random import Random
from typing import Any

import pytest

from keys.catalog.old_log import OldLog
from metasrv.service.catalog import event_stream
from metasrv.service.events.event_filter import EventFilter
from metasrv.service.past import catch_up
from metasrv.service.past.catch_up import CatchUp
from metasrv.service.state.stream_places import CATCHING_UP_MAX
from metasrv_base.errors import Unavailable
from metasrv_base.wire.events.events import EventsReset, VersionEvents
from tests.metasrv.service.catalog.event_watcher import ALL, Watcher
from tests.metasrv.service.events.event_mirror import EventMirror, Reads
from tests.metasrv.service.past.stored_log import KEPT, StoredLog, small, stored_log


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "BEAT_MS", 0)
    small(monkeypatch)


WANTED = [ALL, ALL, EventFilter(schema="a"), EventFilter(table="t1"), EventFilter(table_id=1026)]


async def resume_all() -> None:
    for seed in range(10, 20):
        await resume_anywhere(seed)


async def resume_anywhere(seed: int) -> None:
    """A watcher resumes at any version while the log grows and is cut; it is compared with direct
    reads at each version that it is told."""
    draw, reads = Random(seed), Reads()
    async with stored_log(seed) as one:
        await one.grow(draw.randrange(KEPT, 60))
        for _ in range(3):
            begin, wanted = draw.randrange(one.version + 1), draw.choice(WANTED)
            mirror = EventMirror.of(one.catalogs[begin], wanted)
            watcher, position = await Watcher.at(one.state, begin, wanted=wanted), begin
            while position < one.version:
                block = await watcher.next()
                if isinstance(block, VersionEvents):
                    assert block.version > position
                    assert block.version == position + 1 or wanted is not ALL
                    mirror.take(block.events)
                    position = block.version
                elif isinstance(block, EventsReset):
                    position = block.version
                    mirror = EventMirror.of(one.catalogs[position], wanted)
                else:
                    assert isinstance(block, int)
                    assert block == position or wanted is not ALL
                    position = block
                assert mirror.shown() == reads.shown(one.catalogs[position], wanted)
                if draw.random() < 0.2:
                    await one.grow(draw.randrange(3))
                if draw.random() < 0.03:
                    await one.cut(draw.randrange(1, one.version + 1))
            await watcher.stream.aclose()


@pytest.mark.parametrize("seed", range(6))
async def test_given_any_log_when_resumed_anywhere_then_what_is_told_equals_direct_reads(
    seed: int,
) -> None:
    await resume_anywhere(seed)


JOINED = CatchUp.pieces


async def twice(self: CatchUp) -> Any:
    """The last events of the log are told once more where memory begins."""
    last = b""
    async for piece in JOINED(self):
        last = piece if b"event: version" in piece else last
        yield piece
    if last:
        yield last


async def one_beyond(self: CatchUp) -> Any:
    begin = self.position
    async for piece in JOINED(self):
        yield piece
    if begin < self.position < self.state.follower.catalog.version:
        self.position += 1


PLANTED = {"an event sent twice at the joint": twice, "one lost at the joint": one_beyond}


@pytest.mark.parametrize("bug", PLANTED)
async def test_given_a_planted_bug_when_resumed_anywhere_then_it_differs_from_reads(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CatchUp, "pieces", PLANTED[bug])

    with pytest.raises((AssertionError, KeyError)):
        await resume_all()


async def test_given_zero_when_resumed_then_all_versions_of_the_log_and_of_memory() -> None:
    async with stored_log() as one:
        await one.grow(50)

        watcher = await Watcher.at(one.state, 0)
        await watcher.until(51)

        assert watcher.versions == list(range(1, 52))
        assert one.state.catching_up.open == 0


async def test_given_a_log_that_begins_later_then_reset_below_it_and_none_from_there() -> None:
    async with stored_log() as one:
        await one.grow(40)
        await one.cut(20)

        late, just = await Watcher.at(one.state, 19), await Watcher.at(one.state, 20)
        await late.until(41)
        await just.until(41)

        assert late.told[0] == EventsReset(version=41, reason="expired")
        assert late.versions == []
        assert just.versions == list(range(21, 42))


async def test_given_a_log_that_is_cut_in_the_middle_then_reset_and_it_goes_on() -> None:
    async with stored_log() as one:
        await one.grow(40)
        watcher = await Watcher.at(one.state, 0)
        await watcher.next()
        await one.cut(35)

        await watcher.until(41)
        await one.grow(1)
        await watcher.until(42)

        (reset,) = [block for block in watcher.told if isinstance(block, EventsReset)]
        assert reset == EventsReset(version=41, reason="expired")
        assert watcher.versions[-1] == 42
        assert 34 not in watcher.versions


async def test_given_as_many_in_the_log_as_may_be_then_503_and_live_ones_go_on() -> None:
    async with stored_log() as one:
        await one.grow(60)
        slow = [await Watcher.at(one.state, 0) for _ in range(CATCHING_UP_MAX + 1)]
        for watcher in slow[:-1]:
            await watcher.next()

        with pytest.raises(Unavailable) as refused:
            await Watcher.at(one.state, 1)
        live = await Watcher.at(one.state)
        await live.until(61)
        told = await slow[-1].rest()

        assert refused.value.code == "not-ready"
        assert told == ["goaway"]
        for watcher in slow[:-1]:
            await watcher.stream.aclose()
        assert one.state.catching_up.open == 0


async def test_given_a_watcher_that_reads_the_log_slowly_then_goaway_and_its_place_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catch_up, "WINDOW_MS_MAX", -1)
    async with stored_log() as one:
        await one.grow(30)
        watcher = await Watcher.at(one.state, 0)

        told = await watcher.rest()
        again = await Watcher.at(one.state, watcher.versions[-1])
        await again.next()

        assert told[-1] == "goaway"
        assert watcher.versions == [1, 2, 3]
        assert again.versions == [4]
        assert one.state.watchers.lost["slow"] == 1
        await again.stream.aclose()


async def test_given_a_store_that_refuses_then_signs_of_life_and_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with stored_log() as one:
        await one.grow(30)
        watcher = await Watcher.at(one.state, 0)
        with monkeypatch.context() as patch:
            patch.setattr(OldLog, "window", refused_once)
            told = [await watcher.next(), await watcher.next()]
        await watcher.until(31)

        assert told == [0, 0]
        assert watcher.versions == list(range(1, 32))


async def refused_once(*_: Any) -> Any:
    raise Unavailable("not-ready", what="the store")


async def test_given_a_server_that_stops_when_in_the_log_then_goaway() -> None:
    async with stored_log() as one:
        await one.grow(60)
        watcher = await Watcher.at(one.state, 0)
        await watcher.next()

        one.state.stop()

        assert (await watcher.rest())[-1] == "goaway"


async def test_given_watchers_of_the_log_then_what_live_ones_share_is_kept() -> None:
    async with stored_log() as one:
        await one.grow(60)
        encoded = one.state.events.encoded
        await told_up_to(one, 60 - KEPT)

        assert one.state.events.encoded == encoded


async def told_up_to(one: StoredLog, version: int) -> None:
    watcher = await Watcher.at(one.state, 0)
    while not watcher.versions or watcher.versions[-1] < version:
        await watcher.next()
    await watcher.stream.aclose()
