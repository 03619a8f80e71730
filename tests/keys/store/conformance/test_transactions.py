"""Reads, compares, writes and refusals of one transaction."""

import pytest

from keys.store.kv import TXN_OPS_MAX, Compare, Delete, Get, Put, Request
from metasrv_base.errors import Conflict, Refused
from tests.keys.store.conformance.store import DEADLINE_MS, Store


async def test_given_two_writes_when_put_together_then_they_share_one_revision(
    store: Store,
) -> None:
    revision = await store.write(Put(b"a", b"1"), Put(b"b", b"2"))

    assert [
        (item.key, item.create_revision, item.mod_revision) for item in await store.everything()
    ] == [
        (b"a", revision, revision),
        (b"b", revision, revision),
    ]


async def test_given_a_key_when_put_again_then_only_its_mod_revision_rises(store: Store) -> None:
    first = await store.put(b"a", b"1")

    second = await store.put(b"a", b"2")

    (item,) = await store.everything()
    assert (item.value, item.create_revision, item.mod_revision) == (b"2", first, second)
    assert second == first + 1


async def test_given_a_deleted_key_when_put_again_then_it_is_created_anew(store: Store) -> None:
    await store.put(b"a")
    await store.write(Delete(b"a"))

    revision = await store.put(b"a")

    (item,) = await store.everything()
    assert item.create_revision == item.mod_revision == revision


async def test_given_no_such_key_when_deleted_then_no_revision_is_made(store: Store) -> None:
    before = await store.put(b"a")

    answer = await store.txn(Request(writes=(Delete(b"b"),)))

    assert answer.succeeded
    assert answer.revision == before


@pytest.mark.case("greptime 67")
async def test_given_the_revision_read_when_compared_then_the_write_happens(store: Store) -> None:
    seen = await store.put(b"a", b"1")

    answer = await store.txn(Request((Compare(b"a", seen),), (Put(b"a", b"2"),)))

    assert answer.succeeded
    assert answer.revision == seen + 1


@pytest.mark.case("greptime 67")
async def test_given_a_newer_revision_when_compared_then_nothing_is_written(store: Store) -> None:
    stale = await store.put(b"a", b"1")
    seen = await store.put(b"a", b"2")
    request = Request((Compare(b"a", stale),), (Put(b"b", b"x"),), on_refusal=(Get(b"a"),))

    answer = await store.txn(request)

    assert not answer.succeeded
    assert [item.mod_revision for item in answer.ranges[0]] == [seen]
    assert [item.key for item in await store.everything()] == [b"a"]


@pytest.mark.parametrize(("key", "is_absent"), [(b"a", False), (b"b", True)])
@pytest.mark.case("greptime 67")
async def test_given_one_key_when_absence_is_compared_then_only_the_other_is_absent(
    store: Store, key: bytes, is_absent: bool
) -> None:
    await store.put(b"a")

    answer = await store.txn(Request((Compare(key, 0),)))

    assert answer.succeeded is is_absent


@pytest.mark.parametrize(
    ("start", "end", "is_absent"),
    [(b"a/", b"a0", False), (b"b/", b"b0", True), (b"a/2", b"\0", True), (b"", b"\0", False)],
)
async def test_given_one_key_when_range_absence_is_compared_then_it_counts_in_its_range(
    store: Store, start: bytes, end: bytes, is_absent: bool
) -> None:
    await store.put(b"a/1")

    answer = await store.txn(Request((Compare(start, 0, end),)))

    assert answer.succeeded is is_absent


async def test_given_a_range_when_compared_with_a_revision_then_every_key_must_have_it(
    store: Store,
) -> None:
    one = await store.write(Put(b"a/1", b""), Put(b"a/2", b""))
    whole = Compare(b"a/", one, b"a0")
    assert (await store.txn(Request((whole,)))).succeeded
    assert not (await store.txn(Request((Compare(b"z/", one, b"z0"),)))).succeeded

    await store.put(b"a/2")

    assert not (await store.txn(Request((whole,)))).succeeded


@pytest.mark.parametrize(
    ("write", "is_unchanged"),
    [
        (Put(b"a/2", b""), False),
        (Put(b"a/3", b""), False),
        (Put(b"b", b""), True),
        (Delete(b"a/2"), True),
    ],
    ids=["put again", "new", "outside", "deleted"],
)
async def test_given_a_range_when_compared_as_unchanged_then_a_put_since_is_seen_and_a_deletion_not(
    store: Store, write: Put | Delete, is_unchanged: bool
) -> None:
    await store.put(b"a/1")
    seen = await store.put(b"a/2")
    unchanged = Compare(b"a/", seen, b"a0", or_older=True)
    assert (await store.txn(Request((unchanged,)))).succeeded

    await store.write(write)

    assert (await store.txn(Request((unchanged,)))).succeeded is is_unchanged


async def test_given_a_key_deleted_and_put_again_when_compared_as_unchanged_then_it_is_seen(
    store: Store,
) -> None:
    seen = await store.put(b"a/1")
    await store.write(Delete(b"a/1"))
    await store.put(b"a/1")

    answer = await store.txn(Request((Compare(b"a/", seen, b"a0", or_older=True),)))

    assert not answer.succeeded


@pytest.mark.parametrize("revision", [0, 1])
async def test_given_no_key_when_compared_as_unchanged_then_it_holds_at_any_revision(
    store: Store, revision: int
) -> None:
    await store.put(b"b")

    answer = await store.txn(Request((Compare(b"a/", revision, b"a0", or_older=True),)))

    assert answer.succeeded


async def test_given_keys_of_several_revisions_when_read_then_only_the_newer_come(
    store: Store,
) -> None:
    await store.put(b"a")
    seen = await store.put(b"b")
    await store.write(Put(b"c", b""), Put(b"d", b""))
    newer = Get(b"", b"\0", limit=1, newer_than=seen)

    answer = await store.txn(Request(reads=(newer, newer._replace(limit=0))))
    page = await store.kv.range(newer, deadline_ms=DEADLINE_MS)

    assert [[item.key for item in items] for items in answer.ranges] == [[b"c"], [b"c", b"d"]]
    assert ([item.key for item in page.items], page.more, page.count) == ([b"c"], True, 4)


@pytest.mark.case("greptime 67")
async def test_given_reads_beside_writes_when_done_then_they_see_the_writes(store: Store) -> None:
    await store.put(b"a", b"1")
    request = Request(
        writes=(Put(b"b", b"2"), Delete(b"a")),
        reads=(Get(b"a"), Get(b"", b"\0"), Get(b"", b"\0", keys_only=True)),
    )

    answer = await store.txn(request)

    assert [[(item.key, item.value) for item in found] for found in answer.ranges] == [
        [],
        [(b"b", b"2")],
        [(b"b", b"")],
    ]


async def test_given_a_limit_when_a_transaction_reads_then_the_lowest_keys_come(
    store: Store,
) -> None:
    await store.write(Put(b"b", b""), Put(b"a", b""), Put(b"c", b""))

    answer = await store.txn(Request(reads=(Get(b"", b"\0", limit=2),)))

    assert [item.key for item in answer.ranges[0]] == [b"a", b"b"]


AS_MANY_AS_ALLOWED = range(TXN_OPS_MAX)
ONE_TOO_MANY = range(TXN_OPS_MAX + 1)


def compares(numbers: range) -> tuple[Compare, ...]:
    return tuple(Compare(b"%d" % number, 0) for number in numbers)


def puts(numbers: range, value: bytes = b"") -> tuple[Put, ...]:
    return tuple(Put(b"%d" % number, value) for number in numbers)


def gets(numbers: range) -> tuple[Get, ...]:
    return tuple(Get(b"%d" % number) for number in numbers)


@pytest.mark.parametrize(
    "request_",
    [
        Request(compares(ONE_TOO_MANY), puts(range(1))),
        Request(writes=puts(ONE_TOO_MANY)),
        Request(writes=puts(range(1)), reads=gets(AS_MANY_AS_ALLOWED)),
        Request(writes=puts(range(1)), on_refusal=gets(ONE_TOO_MANY)),
        Request(writes=puts(range(1), b"x" * 1_600_000)),
        Request(writes=puts(range(100), b"x" * 16_000)),
    ],
    ids=["compares", "writes", "writes-and-reads", "refusal-reads", "one-value", "all-values"],
)
async def test_given_a_request_above_a_limit_when_sent_then_it_is_refused_and_nothing_done(
    store: Store, request_: Request
) -> None:
    with pytest.raises(Refused) as refused:
        await store.txn(request_)

    assert refused.value.code == "ddl-too-large"
    assert await store.everything() == ()


async def test_given_a_request_at_the_limits_when_sent_then_it_is_done(store: Store) -> None:
    writes = puts(AS_MANY_AS_ALLOWED, b"x" * 11_000)
    request = Request(compares(AS_MANY_AS_ALLOWED), writes, on_refusal=gets(AS_MANY_AS_ALLOWED))

    answer = await store.txn(request)

    assert answer.succeeded
    assert len(await store.everything()) == TXN_OPS_MAX


async def test_given_a_key_written_twice_when_sent_then_it_is_our_own_mistake(
    store: Store,
) -> None:
    with pytest.raises(AssertionError):
        await store.txn(Request(writes=(Put(b"a", b"1"), Delete(b"a"))))


async def test_given_a_lease_that_is_gone_when_put_under_it_then_nothing_is_done(
    store: Store,
) -> None:
    lease = await store.kv.grant(60_000, deadline_ms=DEADLINE_MS)
    await store.kv.revoke(lease, deadline_ms=DEADLINE_MS)

    with pytest.raises(Conflict):
        await store.write(Put(b"a", b""), Put(b"b", b"", lease))

    assert await store.everything() == ()
