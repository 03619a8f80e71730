"""Leases: what they delete, when, and what renewing a lease that is gone says."""

from keys.store.kv import Event, LeaseId, Put, Watched
from tests.keys.store.conformance.store import DEADLINE_MS, Store

TTL_MS = 1_000


async def grant(store: Store, ttl_ms: int = 60_000) -> LeaseId:
    return await store.kv.grant(ttl_ms, deadline_ms=DEADLINE_MS)


async def test_given_keys_under_a_lease_when_its_time_is_over_then_they_go_together(
    store: Store,
) -> None:
    lease = await grant(store, TTL_MS)
    put = await store.write(Put(b"a", b"", lease), Put(b"b", b"", lease), Put(b"c", b""))

    store.let_pass(TTL_MS)
    (gone,) = await store.watched(1, put + 1)

    assert gone == Watched(put + 1, (Event(b"a", None, put + 1), Event(b"b", None, put + 1)))
    assert [item.key for item in await store.everything()] == [b"c"]
    assert await store.kv.keep_alive(lease, deadline_ms=DEADLINE_MS) is False


async def test_given_a_lease_when_revoked_then_its_keys_are_gone_at_once(store: Store) -> None:
    lease = await grant(store)
    await store.put(b"a", lease=lease)

    await store.kv.revoke(lease, deadline_ms=DEADLINE_MS)

    assert await store.everything() == ()
    assert await store.kv.keep_alive(lease, deadline_ms=DEADLINE_MS) is False


async def test_given_a_lease_that_is_gone_when_revoked_then_it_is_no_error(store: Store) -> None:
    lease = await grant(store)

    await store.kv.revoke(lease, deadline_ms=DEADLINE_MS)
    await store.kv.revoke(lease, deadline_ms=DEADLINE_MS)


async def test_given_a_lease_when_kept_alive_then_its_keys_stay_as_they_are(store: Store) -> None:
    lease = await grant(store)
    await store.put(b"a", lease=lease)
    before = await store.everything()

    assert await store.kv.keep_alive(lease, deadline_ms=DEADLINE_MS) is True

    assert await store.everything() == before
    assert [item.lease for item in before] == [lease]


async def test_given_a_key_under_a_lease_when_put_without_it_then_it_outlives_the_lease(
    store: Store,
) -> None:
    lease = await grant(store)
    await store.put(b"a", lease=lease)
    await store.put(b"a")

    await store.kv.revoke(lease, deadline_ms=DEADLINE_MS)

    assert [(item.key, item.lease) for item in await store.everything()] == [(b"a", 0)]
