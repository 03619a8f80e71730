"""Where nodes are reached: heard of by a watch, or read once in a while where nobody follows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keys.model.cluster import NodeKey
from keys.store.kv import Delete, Get, KeyPage, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.service.state.addresses import KEPT_MS, Addresses
from metasrv_base.errors import Unavailable
from tests.fakes.clock import FakeClock
from tests.metasrv.nodes.samples import node

DEADLINE_MS = 1_000


class AwayKv(MemoryKv):
    """Counts reads; `is_away`: it does not answer."""

    reads = 0
    is_away = False

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        self.reads += 1
        if self.is_away:
            raise Unavailable
        return await super().range(get, deadline_ms=deadline_ms, revision=revision)


async def put(kv: AwayKv, node_id: str, address: str) -> None:
    value = node(node_id).model_copy(update={"address": address})
    write = Put(bytes(NodeKey("datanode", node_id)), encode(value))
    await kv.txn(Request(writes=(write,)), deadline_ms=DEADLINE_MS)


@asynccontextmanager
async def followed() -> AsyncIterator[tuple[AwayKv, Addresses]]:
    kv = AwayKv(clock := FakeClock())
    await put(kv, "dn-1", "http://one:1")
    addresses = Addresses(kv, clock, DEADLINE_MS)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(addresses.follow())
        await addresses.followed.wait()
        yield kv, addresses
        task.cancel()


async def settled(addresses: Addresses, node_id: str, address: str | None) -> None:
    """The store in memory tells within a few turns of the loop."""
    for _ in range(1_000):
        if (await addresses.known()).get(node_id) == address:
            return
        await asyncio.sleep(0)
    raise AssertionError(await addresses.known())


async def test_given_a_server_that_follows_then_nodes_come_move_and_go_and_nothing_is_read() -> (
    None
):
    async with followed() as (kv, addresses):
        before = kv.reads

        await put(kv, "dn-2", "http://two:2")
        await settled(addresses, "dn-2", "http://two:2")
        await put(kv, "dn-1", "http://moved:1")
        await settled(addresses, "dn-1", "http://moved:1")
        gone = Delete(bytes(NodeKey("datanode", "dn-2")))
        await kv.txn(Request(writes=(gone,)), deadline_ms=DEADLINE_MS)
        await settled(addresses, "dn-2", None)

        assert kv.reads == before


async def test_given_a_change_that_moves_no_node_then_what_was_made_of_them_stays() -> None:
    async with followed() as (kv, addresses):
        known = await addresses.known()

        await put(kv, "dn-1", "http://one:1")
        await put(kv, "dn-3", "http://three:3")
        await settled(addresses, "dn-3", "http://three:3")

        assert await addresses.known() is not known
        assert known == {"dn-1": "http://one:1"}


async def test_given_nobody_who_follows_then_it_is_read_once_in_a_while() -> None:
    kv = AwayKv(clock := FakeClock())
    await put(kv, "dn-1", "http://one:1")
    addresses = Addresses(kv, clock, DEADLINE_MS)

    known = await addresses.known()
    again = await addresses.known()
    clock.advance(KEPT_MS)
    kv.is_away = True
    silent = await addresses.known()

    assert known is again is silent
    assert (known, kv.reads) == ({"dn-1": "http://one:1"}, 2)
