"""Three members: whoever of them dies, the client goes on, and sends nothing twice.

One that freezes is in tests/process/test_members.py.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from aetcd.rpc import rpc_pb2_grpc

from keys.store.etcd import EtcdKv
from keys.store.kv import Get, Put, Request
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Unavailable, Unknown
from tests.etcd.cluster import EtcdCluster

pytestmark = [pytest.mark.etcd, pytest.mark.process]

DEADLINE_MS = 10_000
BACK_S = 120
ROUNDS = 12  # of a list of three, so that every member is asked


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.kill()


@pytest.fixture
async def kv(cluster: EtcdCluster) -> AsyncIterator[EtcdKv]:
    store = await EtcdKv.connect(cluster.endpoints, b"/mine/")
    yield store
    await store.close()


class Told:
    """Puts of keys that are used once, and what was said of each."""

    def __init__(self, kv: EtcdKv) -> None:
        self.kv = kv
        self.outcomes: dict[bytes, str] = {}

    async def put(self) -> bool:
        key = b"%06d" % len(self.outcomes)
        request = Request(writes=(Put(key, b""),))
        try:
            await self.kv.txn(request, deadline_ms=DEADLINE_MS)
        except Unknown:
            self.outcomes[key] = "unknown"
        except Unavailable:
            self.outcomes[key] = "not done"
        else:
            self.outcomes[key] = "done"
        return self.outcomes[key] == "done"

    async def goes_on(self) -> int:
        """Until ROUNDS puts in a row are done; how many were not, on the way."""
        clock, failed, in_a_row = SystemClock(), 0, 0
        ends_ms = clock.mono_ms() + BACK_S * 1000
        while in_a_row < ROUNDS:
            assert clock.mono_ms() < ends_ms, f"{failed} puts were not answered"
            done = await self.put()
            failed, in_a_row = failed + (not done), in_a_row + 1 if done else 0
        return failed

    async def wrong(self) -> list[str]:
        """Returns the contradictions between the whole history and the answers."""
        times: Counter[bytes] = Counter()
        keys = (await self.kv.range(Get(b"", b"\0"), deadline_ms=DEADLINE_MS)).items
        newest = max(item.mod_revision for item in keys)
        async for watched in self.kv.watch(b"", b"\0", start_revision=1):
            times.update(event.key for event in watched.events)
            if watched.revision >= newest:
                break
        wrong = [f"{key!r} was put {n} times" for key, n in times.items() if n > 1]
        for key, told in self.outcomes.items():
            if times[key] != {"done": 1, "not done": 0}.get(told, times[key]):
                wrong.append(f"{key!r} is {told}, and was put {times[key]} times")
        return wrong


async def test_given_three_members_when_one_that_is_asked_dies_then_the_others_are_asked(
    cluster: EtcdCluster, kv: EtcdKv
) -> None:
    told = Told(kv)
    assert await told.goes_on() == 0
    leader = await cluster.leader()
    follower = next(member for member in cluster.members if member is not leader)

    follower.kill()
    of_a_follower = await told.goes_on()
    follower.start()
    await told.goes_on()
    leader.kill()
    of_the_leader = await told.goes_on()

    print(f"not answered: {of_a_follower} without a follower, {of_the_leader} without the leader")
    assert await cluster.leader() is not leader
    assert await told.wrong() == []


# What a member sees ----------------------------------------------------------------------------


class Deaf(rpc_pb2_grpc.KVServicer):  # type: ignore[misc]
    """A member that hears everything and never says that it was done."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def Txn(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.heard.append("txn")
        await context.abort(grpc.StatusCode.UNAVAILABLE, "etcdserver: request timed out")

    async def Range(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.heard.append("range")
        await context.abort(grpc.StatusCode.UNAVAILABLE, "etcdserver: leader changed")


async def test_given_members_that_answer_nothing_when_called_then_each_call_is_sent_once() -> None:
    deaf = Deaf()
    async with AsyncExitStack() as stack:
        endpoints = []
        for _ in range(3):
            server = grpc.aio.server()
            rpc_pb2_grpc.add_KVServicer_to_server(deaf, server)
            endpoints.append(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
            await server.start()
            stack.push_async_callback(server.stop, None)
        kv = await EtcdKv.connect(endpoints)
        stack.push_async_callback(kv.close)

        with pytest.raises(Unknown):
            await kv.txn(Request(writes=(Put(b"a", b""),)), deadline_ms=DEADLINE_MS)
        with pytest.raises(Unavailable):
            await kv.range(Get(b"a"), deadline_ms=DEADLINE_MS)

    assert deaf.heard == ["txn", "range"]
