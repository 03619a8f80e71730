"""Reads of a range: order, pages at one revision, the past, compaction."""

import pytest

from keys.key import Range
from keys.store.kv import PAGE_KEYS_MAX, TXN_OPS_MAX, Delete, Get, Put
from keys.store.scan import scan
from metasrv_base.errors import Conflict, Unavailable
from tests.keys.store.conformance.store import DEADLINE_MS, EVERYTHING, Store


@pytest.mark.case("greptime 68")
async def test_given_a_past_revision_when_read_then_the_keys_are_as_they_were(
    store: Store,
) -> None:
    past = await store.write(Put(b"a", b"1"), Put(b"b", b"1"))
    await store.write(Put(b"a", b"2"), Delete(b"b"), Put(b"c", b"2"))

    page = await store.kv.range(EVERYTHING, deadline_ms=DEADLINE_MS, revision=past)

    assert [(item.key, item.value) for item in page.items] == [(b"a", b"1"), (b"b", b"1")]
    assert (page.revision, page.more) == (past, False)


@pytest.mark.case("greptime 68")
async def test_given_a_limit_when_read_then_the_page_says_that_there_is_more(
    store: Store,
) -> None:
    await store.write(Put(b"a", b""), Put(b"b", b""))

    page = await store.kv.range(Get(b"", b"\0", limit=1), deadline_ms=DEADLINE_MS)
    rest = await store.kv.range(Get(b"a\0", b"\0", limit=1), deadline_ms=DEADLINE_MS)

    assert ([item.key for item in page.items], page.more) == ([b"a"], True)
    assert ([item.key for item in rest.items], rest.more) == ([b"b"], False)


@pytest.mark.case("greptime 68")
async def test_given_keys_only_when_read_then_revisions_come_without_values(store: Store) -> None:
    revision = await store.put(b"a", b"1")

    page = await store.kv.range(Get(b"a", keys_only=True), deadline_ms=DEADLINE_MS)

    assert [(item.value, item.mod_revision) for item in page.items] == [(b"", revision)]


async def test_given_keys_when_counted_then_the_count_is_of_the_whole_range(store: Store) -> None:
    await store.write(Put(b"a", b"1"), Put(b"b/1", b"1"), Put(b"b/2", b"1"), Put(b"c", b"1"))
    past = await store.write(Put(b"b/3", b"1"), Delete(b"b/1"))
    await store.write(Delete(b"b/2"))
    every = Get(b"b/", b"b0")

    counted = await store.kv.range(every._replace(count_only=True), deadline_ms=DEADLINE_MS)
    then = await store.kv.range(
        every._replace(count_only=True), deadline_ms=DEADLINE_MS, revision=past
    )
    page = await store.kv.range(EVERYTHING._replace(limit=1), deadline_ms=DEADLINE_MS)

    assert (counted.items, counted.count, counted.more) == ((), 1, False)
    assert (then.items, then.count) == ((), 2)
    assert (len(page.items), page.count) == (1, 3)


async def test_given_a_serializable_read_when_nothing_is_behind_then_it_sees_the_same(
    store: Store,
) -> None:
    await store.put(b"a", b"1")

    page = await store.kv.range(EVERYTHING, deadline_ms=DEADLINE_MS, serializable=True)

    assert [item.value for item in page.items] == [b"1"]


@pytest.mark.case("greptime 60")
async def test_given_writes_between_pages_when_scanned_then_all_is_of_one_revision(
    store: Store,
) -> None:
    numbers = range(PAGE_KEYS_MAX + 50)
    for first in range(0, len(numbers), TXN_OPS_MAX):
        await store.write(*(Put(b"%06d" % n, b"1") for n in numbers[first : first + TXN_OPS_MAX]))
    at = await store.put(b"z")
    await store.write(Put(b"%06d" % numbers[-1], b"2"), Delete(b"%06d" % numbers[0]))

    found, revision = await scan(store.kv, Range(b"0", b"1"), deadline_ms=DEADLINE_MS, revision=at)

    assert revision == at
    assert [item.key for item in found] == [b"%06d" % number for number in numbers]
    assert {item.value for item in found} == {b"1"}


async def test_given_an_empty_range_when_scanned_then_its_revision_is_told(store: Store) -> None:
    at = await store.put(b"a")

    assert await scan(store.kv, Range(b"x", b"y"), deadline_ms=DEADLINE_MS) == ((), at)


async def test_given_a_compaction_when_older_revisions_are_read_then_history_has_expired(
    store: Store,
) -> None:
    old = await store.put(b"a", b"1")
    await store.put(b"a", b"2")
    at = await store.write(Delete(b"b"), Put(b"c", b"3"))
    await store.put(b"a", b"4")

    await store.kv.compact(at, deadline_ms=DEADLINE_MS)

    with pytest.raises(Conflict) as expired:
        await store.kv.range(EVERYTHING, deadline_ms=DEADLINE_MS, revision=old)
    assert expired.value.code == "history-expired"
    page = await store.kv.range(EVERYTHING, deadline_ms=DEADLINE_MS, revision=at)
    assert [(item.key, item.value) for item in page.items] == [(b"a", b"2"), (b"c", b"3")]


async def test_given_a_compaction_when_done_again_then_it_is_no_error(store: Store) -> None:
    at = await store.put(b"a")

    await store.kv.compact(at, deadline_ms=DEADLINE_MS)
    await store.kv.compact(at, deadline_ms=DEADLINE_MS)

    assert [item.key for item in await store.everything()] == [b"a"]


async def test_given_a_revision_to_come_when_read_or_compacted_then_that_is_told(
    store: Store,
) -> None:
    future = await store.put(b"a") + 1_000_000

    with pytest.raises(Unavailable):
        await store.kv.range(EVERYTHING, deadline_ms=DEADLINE_MS, revision=future)
    with pytest.raises(Unavailable):
        await store.kv.compact(future, deadline_ms=DEADLINE_MS)
