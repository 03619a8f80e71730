"""The heart: what an answer may do, by its term and sequence, and who must end."""

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from dataplane.datanode.membership.heartbeat import HeartbeatLoop, HeartbeatPorts, Machine
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.orders.journal import NodeJournal, open_journal
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.store import DiskStore
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable
from metasrv_base.wire.node.nodes import (
    Grant,
    HeartbeatAnswer,
    HeartbeatRequest,
    NodeResources,
    RefusedStat,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.orders import CloseRegion, OrderRequest, OrderResponse
from tests.dataplane.datanode.orders.fake_regions import FakeRegions
from tests.fakes.clock import FakeClock

REGION = 1024 << 32
LEASE_MS = 10_000
JOINED = RegisterAnswer(
    cluster_id="c", term=3, heartbeat_ms=2_000, lease_ms=LEASE_MS, settings_version=1
)


def start_nothing(work: Coroutine[Any, Any, None]) -> None:
    raise AssertionError("no region is opened here")


class ScriptEnded(Exception):
    """Ends a heart that would beat for ever."""


@dataclass
class FakeLeader:
    """Answers from scripts; an error in one is raised. Each heartbeat takes `took_ms`."""

    clock: FakeClock
    registers: deque[RegisterAnswer | MetaError]
    beats: deque[HeartbeatAnswer | MetaError]
    took_ms: int = 0
    gate: asyncio.Event | None = None
    """Answers wait for it."""
    registered: list[RegisterRequest] = field(default_factory=list)
    heard: list[HeartbeatRequest] = field(default_factory=list)

    async def register(self, request: RegisterRequest) -> RegisterAnswer:
        self.registered.append(request)
        if not self.registers:
            raise ScriptEnded
        answer = self.registers.popleft()
        if isinstance(answer, MetaError):
            raise answer
        return answer

    async def heartbeat(self, request: HeartbeatRequest, deadline_ms: int) -> HeartbeatAnswer:
        self.heard.append(request)
        self.clock.advance(self.took_ms)
        if self.gate is not None:
            await self.gate.wait()
        if not self.beats:
            raise ScriptEnded
        answer = self.beats.popleft()
        if isinstance(answer, MetaError):
            raise answer
        return answer


class FakeMachine:
    async def folders(self) -> tuple[str, ...]:
        return ()

    async def resources(self) -> NodeResources:
        return NodeResources(
            cpu_cores=1, memory_bytes=1, memory_free_bytes=1, disk_bytes=1, disk_free_bytes=1
        )


class SlowMachine(FakeMachine):
    """Others run while it looks at its resources."""

    async def resources(self) -> NodeResources:
        for _ in range(100):
            await asyncio.sleep(0)
        return await super().resources()


class UnreadableMachine(FakeMachine):
    """Cannot be read at some of the looks, which are counted from 1."""

    def __init__(self, *unreadable: int) -> None:
        self._unreadable = unreadable
        self._looks = 0

    async def resources(self) -> NodeResources:
        self._looks += 1
        if self._looks in self._unreadable:
            raise Unavailable("not-ready", path="/proc/meminfo", errno="EMFILE")
        return await super().resources()


@dataclass
class Bench:
    clock: FakeClock
    leader: FakeLeader
    journal: NodeJournal
    membership: Membership
    leases: RegionLeases
    heart: HeartbeatLoop
    regions: NodeRegionSet

    async def run(self) -> None:
        with pytest.raises(ScriptEnded):
            await self.heart.run()


def bench_of(
    *beats: HeartbeatAnswer | MetaError,
    cluster_id: str | None = None,
    full_at: int = 0,
    machine: Machine | None = None,
) -> Bench:
    """The disk has no space while the answer to heartbeat *full_at* is taken."""

    def space(operation: str, path: str) -> None:
        if full_at and len(leader.heard) == full_at and operation in ("append", "create"):
            raise Unavailable("storage-full", path=path)

    clock = FakeClock()
    leader = FakeLeader(clock, deque([JOINED]), deque(beats))
    disk = MemoryDisk(MemoryStore(), space)
    journal = open_journal(disk, "/n", "dn-1")
    journal.state.cluster_id = cluster_id
    leases = RegionLeases("i1")
    regions = NodeRegionSet(DiskStore(disk, clock, "/n"), leases, clock, start_nothing)
    membership = Membership(NodeIdentity("dn-1", "i1", "http://n", "z", "/n"), cluster_id)
    world = HeartbeatPorts(leader, machine or FakeMachine(), clock, leases)
    heart = HeartbeatLoop(membership, OrderExecutor(journal, regions), journal, regions, world)
    return Bench(clock, leader, journal, membership, leases, heart, regions)


def answer(sequence: int, term: int = 3, epoch: int = 1) -> HeartbeatAnswer:
    return HeartbeatAnswer(
        sequence=sequence,
        term=term,
        lease_ms=LEASE_MS,
        settings_version=1,
        catalog_version=1,
        grants=[Grant(region_id=str(REGION), epoch=epoch)],
        instructions=[],
    )


async def test_given_a_slow_answer_when_granted_then_it_counts_from_the_sending() -> None:
    bench = bench_of(answer(1))
    bench.leader.took_ms = 1_500
    sent_ms = bench.clock.mono_ms()

    await bench.run()

    assert bench.leases.deadline_ms(REGION, 1) == sent_ms + LEASE_MS - 10
    assert bench.membership.heard_ms == sent_ms


async def test_given_addresses_in_an_answer_then_they_count_until_others_come() -> None:
    told = {"dn-1": "http://n", "dn-2": "http://moved"}
    bench = bench_of(answer(1).model_copy(update={"addresses": told}), answer(2))

    await bench.run()

    assert bench.regions.addresses.urls == told
    assert [one.addresses_digest for one in bench.leader.heard] == [None] * 3, "it has no copies"


async def test_given_what_floors_have_refused_when_it_beats_then_the_leader_is_told() -> None:
    bench = bench_of(answer(1))
    bench.regions.refusals.note(Conflict("schema-version-stale", floor=3, found=2), 7, "fe-1")

    await bench.run()

    told = [RefusedStat(table_id=7, holder_id="fe-1", count=1)]
    assert [one.refused for one in bench.leader.heard] == [told] * 2


async def test_given_a_deposed_leader_when_it_answers_then_it_grants_nothing() -> None:
    bench = bench_of(answer(1, term=5, epoch=1), answer(2, term=4, epoch=2))

    await bench.run()

    assert bench.leases.deadline_ms(REGION, 1) is not None
    assert bench.leases.deadline_ms(REGION, 2) is None
    assert bench.journal.state.term == 5


async def test_given_a_term_that_cannot_be_written_down_when_answered_then_it_grants_nothing() -> (
    None
):
    bench = bench_of(answer(1), answer(2, term=5, epoch=2), full_at=2)

    await bench.run()

    assert bench.journal.state.term == 3
    assert bench.leases.deadline_ms(REGION, 2) is None


async def test_given_space_again_when_the_term_is_heard_again_then_it_is_written_and_granted() -> (
    None
):
    beats = [answer(1), answer(2, term=5, epoch=2), answer(3, term=5, epoch=2)]
    bench = bench_of(*beats, full_at=2)

    await bench.run()

    assert bench.journal.state.term == 5
    assert bench.leases.deadline_ms(REGION, 2) is not None


async def test_given_an_answer_to_another_heartbeat_when_taken_then_it_grants_nothing() -> None:
    bench = bench_of(answer(1, epoch=1), answer(1, epoch=2))

    await bench.run()

    assert bench.leases.deadline_ms(REGION, 2) is None


async def test_given_silence_when_it_beats_again_then_sequences_rise_at_the_same_pace() -> None:
    bench = bench_of(Unavailable(), Unavailable(), answer(3))
    begun_ms = bench.clock.mono_ms()

    await bench.run()

    assert [beat.sequence for beat in bench.leader.heard] == [1, 2, 3, 4]
    assert bench.clock.mono_ms() - begun_ms == 3 * JOINED.heartbeat_ms
    assert bench.leases.deadline_ms(REGION, 1) == begun_ms + 2 * 2_000 + LEASE_MS - 10


async def test_given_a_machine_that_cannot_be_read_when_it_beats_then_one_heartbeat_is_missed() -> (
    None
):
    at_registration, at_second_beat = 1, 4
    machine = UnreadableMachine(at_registration, at_second_beat)
    bench = bench_of(answer(1), answer(2), machine=machine)

    await bench.run()

    assert [beat.sequence for beat in bench.leader.heard] == [1, 2, 3]
    assert bench.leases.deadline_ms(REGION, 1) == bench.clock.mono_ms() - 2_000 + LEASE_MS - 10


async def test_given_a_first_registration_when_answered_then_the_cluster_is_on_disk() -> None:
    bench = bench_of()

    await bench.run()

    assert bench.leader.registered[0].cluster_id is None
    assert bench.journal.state.cluster_id == "c"
    assert bench.leader.heard[0].cluster_id == "c"


async def test_given_another_cluster_when_registered_then_it_never_serves() -> None:
    bench = bench_of(cluster_id="mine")

    with pytest.raises(Conflict) as refused:
        await bench.heart.run()

    assert refused.value.code == "wrong-cluster"
    assert bench.leader.heard == []


async def test_given_a_leader_that_forgot_the_node_when_told_then_it_registers_again() -> None:
    bench = bench_of(NotFound())
    bench.leader.registers.append(JOINED)

    await bench.run()

    assert len(bench.leader.registered) == 2
    assert {request.incarnation for request in bench.leader.registered} == {"i1"}


async def test_given_one_refusal_as_stale_when_the_next_is_heard_then_it_lives_on() -> None:
    bench = bench_of(Refused("stale-incarnation"), answer(2))

    await bench.run()

    assert bench.leases.deadline_ms(REGION, 1) is not None


async def test_given_two_refusals_as_stale_when_told_then_it_ends() -> None:
    bench = bench_of(Refused("stale-incarnation"), Refused("stale-incarnation"))

    with pytest.raises(Conflict) as refused:
        await bench.heart.run()

    assert refused.value.code == "stale-incarnation"


CLAIMS = OrderRequest(cluster_id="c", node_id="dn-1", term=7, orders=[])


async def test_given_an_order_of_a_new_term_when_the_leader_tells_the_same_then_it_is_taken() -> (
    None
):
    bench = bench_of(answer(1))
    await bench.run()
    bench.leader.beats.append(answer(bench.membership.sequence + 1, term=7))

    taken = await bench.heart.execute(CLAIMS)
    again = await bench.heart.execute(CLAIMS)

    assert taken == again == OrderResponse(results=[])
    assert bench.journal.state.term == 7
    assert len(bench.leader.heard) == 3, "a term that is told is not asked for"


@pytest.mark.parametrize("told", [Unavailable(), answer(3, term=3)], ids=["silence", "term 3"])
async def test_given_an_order_of_a_term_that_nobody_confirms_when_taken_then_the_term_stands(
    told: HeartbeatAnswer | MetaError,
) -> None:
    bench = bench_of(answer(1))
    await bench.run()
    bench.leader.beats.append(told)

    with pytest.raises(Unavailable):
        await bench.heart.execute(CLAIMS)

    assert bench.journal.state.term == 3
    assert len(bench.leader.heard) == 3


async def test_given_many_orders_of_a_claimed_term_when_they_wait_then_two_heartbeats_ask() -> None:
    bench = bench_of(answer(1))
    await bench.run()
    bench.leader.beats.extend([answer(3), answer(4)])
    bench.leader.gate = asyncio.Event()

    async def claim() -> str:
        with pytest.raises(Unavailable) as refused:
            await bench.heart.execute(CLAIMS)
        return refused.value.code

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(claim()) for _ in range(20)]
        await asyncio.wait(tasks, timeout=0)
        bench.leader.gate.set()

    assert {task.result() for task in tasks} == {"not-ready"}
    assert len(bench.leader.heard) == 4, "the first one's, and one for all that came meanwhile"


async def test_given_instructions_that_wait_when_others_come_then_the_regions_hear_of_them() -> (
    None
):
    """They may wait for a copy, and one of the later ones tells that it has left."""

    def told(number: int) -> HeartbeatAnswer:
        order = CloseRegion(number=number, region_id=str(REGION), epoch=1)
        return answer(number).model_copy(update={"instructions": [order]})

    bench = bench_of(told(1), told(2), told(3))
    regions = FakeRegions(MemoryStore(), held=asyncio.Event())
    desk = OrderExecutor(bench.journal, regions)
    world = HeartbeatPorts(bench.leader, SlowMachine(), bench.clock, bench.leases)
    heart = HeartbeatLoop(bench.membership, desk, bench.journal, bench.regions, world)
    async with asyncio.TaskGroup() as group:
        instructions = group.create_task(heart.run_instructions())
        with pytest.raises(ScriptEnded):
            await heart.run()
        instructions.cancel()

    assert regions.done == []
    assert {2, 3} <= set(regions.made_way)
