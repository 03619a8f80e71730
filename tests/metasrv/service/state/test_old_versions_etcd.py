"""Versions older than all that memory holds, rebuilt from snapshot and log of a real etcd."""

from collections.abc import AsyncIterator

import pytest

from keys.catalog.follower import VERSIONS_KEPT
from keys.store.etcd import EtcdKv
from keys.store.kv import Kv
from metasrv.service.catalog.reading import Freshness, view
from metasrv_base.errors import Refused
from tests.keys.catalog.snapshots import plain
from tests.metasrv.service.past.stored_log import StoredLog, stored_log

pytestmark = pytest.mark.etcd
CUT = 60
"""The version of the snapshot below which the log is deleted."""


@pytest.fixture
async def kv(etcd: str, etcd_prefix: bytes) -> AsyncIterator[Kv]:
    kv = await EtcdKv.connect([etcd], etcd_prefix)
    yield kv
    await kv.close()


async def read(one: StoredLog, version: int) -> None:
    """Reads one version as a request does, and compares it with what it was."""
    assert one.state.follower.at(version) is None, "memory does not have it"
    answer = await view(one.state, Freshness(as_of=f"version:{version}"))
    assert plain(answer.catalog) == plain(one.catalogs[version])


async def test_given_more_versions_than_memory_holds_when_read_then_each_is_as_it_was(
    kv: Kv,
) -> None:
    async with stored_log(11, kv) as one:
        await one.grow(VERSIONS_KEPT + 100)
        for version in (1, 37, one.version - VERSIONS_KEPT):
            await read(one, version)

        await one.cut(CUT)

        for version in (CUT, CUT + 1, one.version - VERSIONS_KEPT):
            await read(one, version)
        with pytest.raises(Refused) as refused:
            await read(one, CUT - 2)
    assert refused.value.code == "history-expired"
    assert refused.value.facts["oldest"] == CUT
