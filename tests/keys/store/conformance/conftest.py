"""The two stores under one suite."""

from collections.abc import AsyncIterator

import pytest

from keys.store.etcd import EtcdKv
from keys.store.memory import MemoryKv
from tests.fakes.clock import FakeClock
from tests.keys.store.conformance.store import Store


@pytest.fixture
def memory_store() -> Store:
    clock = FakeClock()
    return Store(MemoryKv(clock), clock)


@pytest.fixture
async def etcd_store(etcd: str, etcd_prefix: bytes) -> AsyncIterator[Store]:
    kv = await EtcdKv.connect([etcd], etcd_prefix)
    yield Store(kv, None)
    await kv.close()


@pytest.fixture(params=["memory", pytest.param("etcd", marks=pytest.mark.etcd)])
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found
