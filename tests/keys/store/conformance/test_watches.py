"""Watches: whole revisions, in order, from any revision that is left."""

import asyncio

import pytest

from keys.store.kv import Delete, Event, Put, Watched
from metasrv_base.errors import Conflict
from tests.keys.store.conformance.store import DEADLINE_MS, Store


async def test_given_past_writes_when_watched_from_the_first_then_each_revision_is_whole(
    store: Store,
) -> None:
    first = await store.write(Put(b"a", b"1"), Put(b"b", b"1"))
    second = await store.write(Delete(b"a"), Put(b"b", b"2"))

    watched = await store.watched(2, first)

    assert [(each.revision, set(each.events)) for each in watched] == [
        (first, {Event(b"a", b"1", first), Event(b"b", b"1", first)}),
        (second, {Event(b"a", None, second), Event(b"b", b"2", second)}),
    ]


async def test_given_a_waiting_watch_when_something_is_written_then_it_is_delivered(
    store: Store,
) -> None:
    start = await store.put(b"a", b"1")

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(store.watched(2, start))
        last = await store.put(b"a", b"2")

    assert [each.revision for each in waiting.result()] == [start, last]


async def test_given_a_watch_when_opened_after_the_last_delivery_then_nothing_comes_twice(
    store: Store,
) -> None:
    start = await store.put(b"a", b"1")
    await store.put(b"a", b"2")
    last = await store.put(b"a", b"3")
    (seen,) = await store.watched(1, start)

    rest = await store.watched(2, seen.revision + 1)

    assert [each.revision for each in rest] == [start + 1, last]


async def test_given_a_part_of_the_keys_when_watched_then_only_their_events_come(
    store: Store,
) -> None:
    start = await store.put(b"b/1")
    both = await store.write(Put(b"a/1", b""), Put(b"b/2", b""), Put(b"b0", b""))
    found: list[Watched] = []

    async for watched in store.kv.watch(b"a/", b"a0", start_revision=start):
        found.append(watched)
        break

    assert found == [Watched(both, (Event(b"a/1", b"", both),))]


async def test_given_a_revision_to_come_when_watched_then_earlier_writes_are_left_out(
    store: Store,
) -> None:
    last = await store.put(b"a", b"1")

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(store.watched(1, last + 2))
        await store.put(b"a", b"2")
        await store.put(b"a", b"3")

    assert [each.revision for each in waiting.result()] == [last + 2]


async def test_given_a_compaction_when_watched_from_before_then_history_has_expired(
    store: Store,
) -> None:
    old = await store.put(b"a", b"1")
    await store.put(b"a", b"2")
    kept = await store.put(b"a", b"3")
    last = await store.put(b"a", b"4")
    await store.kv.compact(kept, deadline_ms=DEADLINE_MS)

    with pytest.raises(Conflict) as expired:
        await store.watched(1, old)

    assert expired.value.code == "history-expired"
    assert expired.value.facts["oldest"] == kept
    assert [each.revision for each in await store.watched(1, kept + 1)] == [last]


async def test_given_a_compaction_at_a_deletion_when_watched_from_it_then_it_is_not_passed_over(
    store: Store,
) -> None:
    await store.put(b"a", b"1")
    gone = await store.write(Delete(b"a"))
    await store.put(b"b", b"2")
    await store.kv.compact(gone, deadline_ms=DEADLINE_MS)

    with pytest.raises(Conflict) as expired:
        await store.watched(1, gone)

    assert expired.value.code == "history-expired"


async def test_given_a_waiting_watch_when_its_task_is_cancelled_then_it_ends(
    store: Store,
) -> None:
    start = await store.put(b"a")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await store.watched(2, start)
