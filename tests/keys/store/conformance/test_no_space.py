"""A store whose space has run out: what goes on, what is refused, and how it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from keys.store.etcd import EtcdKv
from keys.store.kv import Compare, Delete, Get, LeaseId, Put, Request
from keys.store.memory import MemoryKv
from metasrv_base.errors import Unknown
from tests.etcd.process import EtcdProcess
from tests.fakes.clock import FakeClock
from tests.keys.store.conformance.operators import EtcdOperator, MemoryOperator, Operator
from tests.keys.store.conformance.store import DEADLINE_MS, Store

QUOTA_BYTES = 1 << 20
FILLER = b"x" * 100_000
FILLERS_MAX = 100  # etcd counts its file only when it writes it, so some more than the quota fit


@dataclass
class Full:
    """A store that has said once that there is no space; the key `a` and a lease are older."""

    store: Store
    operator: Operator
    first: int
    """The revision of `a`."""
    lease: LeaseId

    async def put(self) -> None:
        """Raises Unknown while the alarm stands."""
        await self.store.put(b"b")


@asynccontextmanager
async def _etcd(folder: Path) -> AsyncIterator[tuple[Store, Operator]]:
    process = EtcdProcess(folder, f"--quota-backend-bytes={QUOTA_BYTES}")
    process.start()
    kv = await EtcdKv.connect([process.endpoint], b"/full/")
    try:
        yield Store(kv, None), EtcdOperator(process.endpoint)
    finally:
        await kv.close()
        process.kill()


@asynccontextmanager
async def _memory(_folder: Path) -> AsyncIterator[tuple[Store, Operator]]:
    kv = MemoryKv(FakeClock(), quota_bytes=QUOTA_BYTES)
    yield Store(kv, None), MemoryOperator(kv)


@pytest.fixture(params=["memory", pytest.param("etcd", marks=pytest.mark.etcd)])
async def full(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Full]:
    opened = {"memory": _memory, "etcd": _etcd}[request.param]
    async with opened(tmp_path) as (store, operator):
        lease = await store.kv.grant(60_000, deadline_ms=DEADLINE_MS)
        first = await store.put(b"a", b"1", lease)
        with pytest.raises(Unknown) as unknown:
            await _fill(store)
        assert unknown.value.facts["reason"] == "no-space"
        yield Full(store, operator, first, lease)


async def _fill(store: Store) -> None:
    for number in count():
        assert number < FILLERS_MAX, "there is always space"
        await store.put(b"filler", FILLER)


async def test_given_no_space_when_read_deleted_or_renewed_then_it_is_done(full: Full) -> None:
    store = full.store

    (a,) = (await store.kv.range(Get(b"a"), deadline_ms=DEADLINE_MS)).items
    renewed = await store.kv.keep_alive(full.lease, deadline_ms=DEADLINE_MS)
    read = await store.txn(Request((Compare(b"a", full.first),), reads=(Get(b"a"),)))
    deleted = await store.txn(Request((Compare(b"a", full.first),), (Delete(b"a"),)))

    assert (a.value, a.mod_revision, renewed) == (b"1", full.first, True)
    assert read.ranges == ((a,),)
    assert deleted.succeeded
    assert [item.key for item in await store.everything()] == [b"filler"]


async def test_given_no_space_when_anything_is_put_then_it_is_unknown_and_the_keys_stay(
    full: Full,
) -> None:
    store, before = full.store, await full.store.everything()
    requests = [
        Request(writes=(Put(b"b", b""),)),
        Request(writes=(Delete(b"a"), Put(b"b", b""))),
        Request((Compare(b"a", full.first + 1),), (Put(b"b", b""),)),
    ]

    for each in requests:
        with pytest.raises(Unknown) as unknown:
            await store.txn(each)
        assert unknown.value.facts["reason"] == "no-space"

    assert await store.everything() == before


async def test_given_no_space_when_a_lease_is_asked_for_then_it_is_unknown(full: Full) -> None:
    with pytest.raises(Unknown) as unknown:
        await full.store.kv.grant(60_000, deadline_ms=DEADLINE_MS)

    assert unknown.value.facts["reason"] == "no-space"


async def test_given_no_space_when_a_lease_ends_then_its_keys_go(full: Full) -> None:
    await full.store.kv.revoke(full.lease, deadline_ms=DEADLINE_MS)

    assert [item.key for item in await full.store.everything()] == [b"filler"]


async def test_given_no_space_when_space_is_made_then_only_the_alarm_is_in_the_way(
    full: Full,
) -> None:
    newest = (await full.store.everything())[-1].mod_revision
    await full.store.kv.compact(newest, deadline_ms=DEADLINE_MS)
    with pytest.raises(Unknown):
        await full.put()
    await full.operator.defragment()
    with pytest.raises(Unknown):
        await full.put()

    await full.operator.disarm()

    await full.put()
    assert await full.store.kv.grant(60_000, deadline_ms=DEADLINE_MS)


async def test_given_no_space_when_only_the_alarm_is_lifted_then_it_comes_back(full: Full) -> None:
    await full.operator.disarm()

    with pytest.raises(Unknown):
        await _fill(full.store)
    with pytest.raises(Unknown):
        await full.put()
