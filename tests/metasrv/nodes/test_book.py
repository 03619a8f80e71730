"""Nodes as the leader hears them: registered durably, heard in order, the newest process only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
from structlog.testing import capture_logs

from keys.catalog.follower import Follower
from keys.commit.bootstrap import bootstrap_request
from keys.commit.committer import Committer
from keys.commit.log_head import read_line
from keys.commit.txn import Txn, snapshot
from keys.model.cluster import Cordon, Leader, LeaderKey, Node, NodeKey
from keys.model.log import TableCreated
from keys.store.kv import Compare, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.nodes.book import NodeBook, Timing
from metasrv.nodes.detector import PhiConfig
from metasrv.nodes.leases import LeaseBook
from metasrv.nodes.status import NodeState
from metasrv.settings.settings import Settings
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.wire.node.nodes import (
    HeartbeatRequest,
    NodeResources,
    RegionStat,
    RegisterRequest,
)
from tests.fakes.clock import FakeClock
from tests.metasrv.nodes.samples import info, route, stat

CLUSTER = "c-1"
DEADLINE_MS = 1_000
LEASE_MS = 10_000
REGION = "4398046511104"
RESOURCES = NodeResources(
    cpu_cores=2, memory_bytes=4, memory_free_bytes=3, disk_bytes=1 << 40, disk_free_bytes=1 << 39
)


class Office:
    """A leader's NodeBook on a store in memory."""

    def __init__(self, kv: MemoryKv, clock: FakeClock, committer: Committer) -> None:
        self.kv, self.clock, self.committer = kv, clock, committer
        self.follower = Follower(kv, clock, deadline_ms=DEADLINE_MS)
        committer.on_update(self.follower.offer)
        self.leases = LeaseBook(LEASE_MS, 5_000, clock.mono_ms())
        self.book = NodeBook(
            cluster_id=CLUSTER,
            kv=kv,
            committer=committer,
            follower=self.follower,
            clock=clock,
            leases=self.leases,
            settings=Settings(kv, committer, clock, DEADLINE_MS),
            timing=Timing(2_000, LEASE_MS, DEADLINE_MS),
            phi=PhiConfig(),
            next_order=count(1).__next__,
            is_busy=lambda _table: False,
        )

    async def stored(self, node: str) -> Node | None:
        key = NodeKey("datanode", node)
        return (await snapshot(self.kv, key, deadline_ms=DEADLINE_MS)).get(key)


@asynccontextmanager
async def office() -> AsyncIterator[Office]:
    clock = FakeClock()
    kv = MemoryKv(clock)
    seat = Leader(server="m-1", url="http://m-1", lease="1")
    put = Request(writes=(Put(bytes(LeaderKey()), encode(seat)),))
    won = await kv.txn(put, deadline_ms=DEADLINE_MS)
    fence = Compare(bytes(LeaderKey()), won.revision)
    await kv.txn(bootstrap_request(fence, CLUSTER, clock.wall_ms()), deadline_ms=DEADLINE_MS)
    line = await read_line(kv, fence, deadline_ms=DEADLINE_MS)
    committer = Committer(kv, clock, line, deadline_ms=DEADLINE_MS)
    made = Office(kv, clock, committer)
    await made.follower.load()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(committer.run())
        yield made
        running.cancel()


def registration(node: str = "dn-1", incarnation: str = "i-1", **facts: object) -> RegisterRequest:
    return RegisterRequest(
        cluster_id=None,
        node_id=node,
        incarnation=incarnation,
        address=f"http://{node}",
        zone="z",
        root=f"/data/{node}",
        version="0",
        resources=RESOURCES,
    ).model_copy(update=facts)


def beat(
    sequence: int, *regions: RegionStat, node: str = "dn-1", incarnation: str = "i-1"
) -> HeartbeatRequest:
    return HeartbeatRequest(
        cluster_id=CLUSTER,
        node_id=node,
        incarnation=incarnation,
        sequence=sequence,
        address=f"http://{node}",
        zone="z",
        version="0",
        term=0,
        resources=RESOURCES,
        regions=list(regions),
    )


async def test_given_a_new_node_when_registered_then_it_is_stored_before_the_answer() -> None:
    async with office() as one:
        answer = await one.book.register(registration())

        stored = await one.stored("dn-1")
        assert stored is not None
        assert (stored.incarnation, stored.root) == ("i-1", "/data/dn-1")
        assert (answer.cluster_id, answer.term) == (CLUSTER, one.committer.term)


async def test_given_a_repeated_registration_when_answered_then_nothing_is_written() -> None:
    async with office() as one:
        await one.book.register(registration())
        before = one.kv.revision

        await one.book.register(registration())

        assert one.kv.revision == before


async def test_given_a_node_of_another_cluster_when_it_registers_then_refused() -> None:
    async with office() as one:
        with pytest.raises(Conflict) as refused:
            await one.book.register(registration(cluster_id="c-2"))

        assert refused.value.code == "wrong-cluster"
        assert await one.stored("dn-1") is None


@pytest.mark.case("input 88")
async def test_given_two_processes_of_one_id_when_both_beat_then_the_newest_is_heard() -> None:
    async with office() as one:
        await one.book.register(registration(incarnation="i-1"))
        await one.book.register(registration(incarnation="i-2"))

        with pytest.raises(Conflict) as refused:
            one.book.heartbeat(beat(5, incarnation="i-1"))
        answer = one.book.heartbeat(beat(0, incarnation="i-2"))

        assert refused.value.code == "stale-incarnation"
        assert answer.sequence == 0


async def test_given_an_unknown_node_when_it_beats_then_it_is_told_to_register() -> None:
    async with office() as one:
        with pytest.raises(NotFound):
            one.book.heartbeat(beat(1))


@pytest.mark.case("input 93")
async def test_given_a_late_or_repeated_beat_when_heard_then_it_changes_nothing() -> None:
    async with office() as one:
        await one.book.register(registration())
        one.book.heartbeat(beat(2, stat(REGION)))
        heard_ms = one.book.entry("dn-1").heard_ms
        one.clock.advance(500)

        answers = [one.book.heartbeat(beat(sequence)) for sequence in (2, 1)]

        assert [(a.grants, a.instructions) for a in answers] == [([], []), ([], [])]
        assert one.book.entry("dn-1").heard_ms == heard_ms
        assert REGION in one.book.entry("dn-1").regions


async def test_given_a_served_region_when_granted_then_its_lease_is_booked_before() -> None:
    async with office() as one:
        await one.book.register(registration())
        created = TableCreated(info=info(), route=route("dn-1"))
        key = NodeKey("datanode", "dn-1")
        seen = await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)
        await one.committer.commit(Txn.on(seen).put(key, seen.must(key)).log(created))
        one.clock.advance(60_000)

        answer = one.book.heartbeat(beat(1, stat(REGION)))

        assert [grant.region_id for grant in answer.grants] == [REGION]
        assert answer.catalog_version == one.follower.catalog.version
        assert one.book.free_in_ms("dn-1", [REGION]) == 11_500


async def test_given_silence_when_long_enough_then_suspect_and_then_dead_and_alive_again() -> None:
    async with office() as one:
        await one.book.register(registration())
        for sequence in range(20):
            one.clock.advance(2_000)
            one.book.heartbeat(beat(sequence))

        states = [one.book.node("dn-1").state]
        for ms in (5_500, 3_000):
            one.clock.advance(ms)
            states.append(one.book.node("dn-1").state)
        one.book.heartbeat(beat(20))
        states.append(one.book.node("dn-1").state)

        assert states == [NodeState.ALIVE, NodeState.SUSPECT, NodeState.DEAD, NodeState.ALIVE]


async def test_given_a_new_leader_when_it_loads_then_no_known_node_is_dead() -> None:
    async with office() as one:
        await one.book.register(registration())
        successor = Office(one.kv, one.clock, one.committer)

        await successor.book.load()

        (status,) = successor.book.statuses()
        assert (status.node.node_id, status.state, status.heard_ms_ago) == (
            "dn-1",
            NodeState.ALIVE,
            None,
        )
        assert successor.book.free_in_ms("dn-1", [REGION]) == 16_500


async def test_given_a_node_that_dies_and_returns_often_when_heard_then_it_is_told_once() -> None:
    async with office() as one:
        await one.book.register(registration())
        one.book.heartbeat(beat(0))
        with capture_logs() as told:
            one.clock.advance(60_000)
            one.book.heartbeat(beat(1))
            for incarnation in ("i-2", "i-3"):
                await one.book.register(registration(incarnation=incarnation))

        flaps = [line for line in told if line["event"] == "node_flapping"]
        assert flaps == [
            {
                "event": "node_flapping",
                "log_level": "warning",
                "node": "dn-1",
                "returns": 3,
                "window_ms": 600_000,
            }
        ]


async def test_given_a_cordon_and_a_new_process_at_one_moment_then_both_stand() -> None:
    async with office() as one:
        await one.book.register(registration())
        cordon = Cordon(reason="disks", by="anna", at_ms=1)

        await asyncio.gather(
            one.book.set_cordon("dn-1", cordon),
            one.book.register(registration(incarnation="i-2")),
        )

        stored = await one.stored("dn-1")
        assert stored is not None
        assert (stored.cordon, stored.incarnation) == (cordon, "i-2")
        assert one.book.entry("dn-1").node == stored


async def test_given_a_node_that_lives_when_it_beats_then_it_does_not_flap() -> None:
    async with office() as one:
        await one.book.register(registration())
        with capture_logs() as told:
            for sequence in range(50):
                one.clock.advance(2_000)
                one.book.heartbeat(beat(sequence))

        assert [line for line in told if line["event"] == "node_flapping"] == []


async def test_given_a_node_of_one_token_when_another_speaks_for_it_then_403() -> None:
    async with office() as one:
        await one.book.register(registration(), "dn-1")
        before = one.kv.revision

        for incarnation in ("i-1", "i-2"):
            with pytest.raises(Refused, match="node-bound"):
                await one.book.register(registration(incarnation=incarnation), "dn-2")
        with pytest.raises(Refused, match="node-bound"):
            one.book.heartbeat(beat(1), "dn-2")

        assert one.kv.revision == before
        assert one.book.heartbeat(beat(1), "dn-1").sequence == 1


async def test_given_a_new_leader_when_another_token_registers_then_403_by_the_stored_row() -> None:
    async with office() as one:
        await one.book.register(registration(), "dn-1")
        one.book._entries.clear()  # as a leader that could not read the row

        with pytest.raises(Refused, match="node-bound"):
            await one.book.register(registration(incarnation="i-2"), "dn-2")


async def test_given_a_node_from_before_tokens_when_it_starts_again_then_it_is_bound() -> None:
    async with office() as one:
        await one.book.register(registration())
        one.book.heartbeat(beat(1), "dn-1")
        await one.book.register(registration(incarnation="i-2"), "dn-1")

        with pytest.raises(Refused, match="node-bound"):
            one.book.heartbeat(beat(1, incarnation="i-2"), "dn-2")


async def test_given_a_cordon_when_the_node_starts_again_then_it_stays_bound_and_cordoned() -> None:
    async with office() as one:
        await one.book.register(registration(), "dn-1")
        await one.book.set_cordon("dn-1", Cordon(reason="r", by="ada", at_ms=1))
        await one.book.register(registration(incarnation="i-2"), "dn-1")

        stored = await one.stored("dn-1")
        assert stored is not None
        assert stored.cordon is not None
        assert stored.principal == "dn-1"


async def test_given_a_rebound_node_then_only_the_new_token_speaks_for_it() -> None:
    async with office() as one:
        await one.book.register(registration(), "shared")
        await one.book.set_principal("dn-1", "dn-1")

        with pytest.raises(Refused, match="node-bound"):
            one.book.heartbeat(beat(1), "shared")
        assert one.book.heartbeat(beat(1), "dn-1").sequence == 1
