"""The line of a large version is made in turns, once for all readers: operations are counted in
each turn of the loop, not time."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from keys.model.log import TableAltered, TableCreated
from metasrv.service.state import feed_lines
from metasrv.service.state.feed_lines import TABLES_AT_ONCE, FeedLines, Wanted
from metasrv.service.state.state import ServerState
from metasrv_base.feed.catalog_replica import FeedReader
from tests.keys.catalog.logs import update
from tests.metasrv.api.turn_counts import TurnCounts
from tests.metasrv.holders.reader import Reader, mirror_of, state
from tests.procedures.harness.tables import table_info, table_route

TABLES = 300
IDS = range(1024, 1024 + TABLES)


def at_newest(one: ServerState, wanted: Wanted = None) -> Reader:
    """A reader that has the newest version, and is told of later ones."""
    catalog = one.follower.catalog
    reader = Reader.of(one, start=catalog.version, wanted=wanted)
    reader.reading = FeedReader(mirror_of(catalog, wanted))
    return reader


async def make(one: ServerState, version: int) -> None:
    """Version 2 makes all tables, later ones change all."""
    if version == 2:
        route = [table_route(table_id, ("dn-1",)) for table_id in IDS]
        infos = [table_info(table_id, f"t{table_id}", 1) for table_id in IDS]
        entries: list[Any] = [
            TableCreated(info=i, route=r) for i, r in zip(infos, route, strict=True)
        ]
    else:
        infos = [table_info(table_id, f"t{table_id}", 1) for table_id in IDS]
        entries = [
            TableAltered(info=info.model_copy(update={"version": version})) for info in infos
        ]
    one.follower.log.offer(update(version, *entries), version)
    await one.follower.log._settle()


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Table id -> how often its text was made."""
    made, sound = Counter[int](), feed_lines._text_of

    def counted(table: Any, element_state: Any) -> bytes:
        made[table.info.table_id] += 1
        return sound(table, element_state)

    monkeypatch.setattr(feed_lines, "_text_of", counted)
    return made


@pytest.mark.parametrize("wanted", [None, frozenset(IDS)])
async def test_given_a_version_of_many_tables_then_no_turn_makes_more_than_some_of_their_texts(
    wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = state()
    reader = at_newest(one, wanted)
    await make(one, 2)
    counts = TurnCounts(monkeypatch)
    counts.count("texts", FeedLines, "_text")

    heard = await reader.next()

    assert (heard.type, len(getattr(heard, "tables", ()))) == ("update", TABLES)
    assert 0 < counts.most["texts"] <= TABLES_AT_ONCE


async def test_given_tables_with_large_texts_then_a_turn_ends_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_lines, "BYTES_AT_ONCE", 1)
    one = state()
    reader = at_newest(one)
    await make(one, 2)
    counts = TurnCounts(monkeypatch)
    counts.count("texts", FeedLines, "_text")

    await reader.next()

    assert counts.most["texts"] == 1


async def test_given_readers_that_come_while_a_line_is_made_then_it_is_made_once(
    texts: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_lines, "TABLES_KEPT", 0)
    one = state()
    readers = [at_newest(one) for _ in range(3)]
    await make(one, 2)

    heard = await asyncio.gather(*(reader.next() for reader in readers))

    assert [line.type for line in heard] == ["update"] * 3
    assert heard[0] == heard[1] == heard[2]
    assert texts == Counter(IDS), "each text once"


async def test_given_a_reader_that_goes_while_it_makes_a_line_then_another_makes_it(
    texts: Counter[int],
) -> None:
    one = state()
    first, second = at_newest(one), at_newest(one)
    await make(one, 2)
    async with asyncio.TaskGroup() as tasks:
        begun = tasks.create_task(first.next())
        waiting = tasks.create_task(second.next())
        for _ in range(5):
            await asyncio.sleep(0)
        assert 0 < len(texts) < TABLES

        begun.cancel()
        heard = await waiting

    assert begun.cancelled()
    assert (heard.type, len(getattr(heard, "tables", ()))) == ("update", TABLES)


async def test_given_versions_that_come_while_a_line_is_made_then_each_is_told_in_order() -> None:
    one = state()
    slow = at_newest(one)
    await make(one, 2)
    late = at_newest(one)
    async with asyncio.TaskGroup() as tasks:
        begun = tasks.create_task(slow.next())
        await asyncio.sleep(0)
        await make(one, 3)
        lines = [await late.next(), await begun]
    then = await slow.next()

    assert [getattr(line, "version", None) for line in (*lines, then)] == [3, 2, 3]
    assert {table.version for table in getattr(then, "tables", ())} == {3}
