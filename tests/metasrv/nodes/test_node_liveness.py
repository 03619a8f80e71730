"""Nodes as the leader hears them: registered durably, heard in order, the newest process only."""

import asyncio

import pytest
from structlog.testing import capture_logs

from keys.catalog.catalog import ENTRIES_AT_ONCE
from keys.commit.txn import Txn, snapshot
from keys.model.cluster import Candidate, CandidateKey, Cordon, NodeKey
from keys.model.log import TableCreated
from keys.store.kv import Put, Request
from keys.value import encode
from metasrv.nodes.heartbeats.instruction_window import INSTRUCTIONS_MAX
from metasrv.nodes.status import NodeState
from metasrv_base.concurrency.turns import slices
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.wire.node.orders import REQUEST_ORDERS_MAX
from tests.keys.commit.changes import told
from tests.metasrv.nodes.leader import (
    CLUSTER,
    DEADLINE_MS,
    LEASE_MS,
    Office,
    beat,
    office,
    registration,
)
from tests.metasrv.nodes.samples import info, route, stat

REGION = "4398046511104"


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


async def test_given_servers_that_stand_when_a_node_registers_then_it_is_told_of_all() -> None:
    async with office() as one:
        for name in ("m-1", "m-2"):
            value = encode(Candidate(server=name, url=f"http://{name}", version="0"))
            put = Request(writes=(Put(bytes(CandidateKey(name)), value),))
            await one.kv.txn(put, deadline_ms=DEADLINE_MS)

        answer = await one.book.register(registration())

        assert answer.metasrvs == ["http://m-1", "http://m-2"]


async def test_given_a_node_of_another_cluster_when_it_registers_then_refused() -> None:
    async with office() as one:
        with pytest.raises(Conflict) as refused:
            await one.book.register(registration(cluster_id="c-2"))

        assert refused.value.code == "wrong-cluster"
        assert await one.stored("dn-1") is None


async def test_given_a_node_of_another_cluster_when_it_beats_then_refused_and_not_heard() -> None:
    async with office() as one:
        await one.book.register(registration())
        with pytest.raises(Conflict) as refused:
            one.book.heartbeat(beat(1).model_copy(update={"cluster_id": "c-2"}))

        assert refused.value.code == "wrong-cluster"
        assert one.book.entry("dn-1").heard_ms is None


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


async def test_given_two_registrations_at_one_moment_then_the_later_does_not_overtake() -> None:
    async with office() as one:
        await one.book.register(registration(incarnation="i-0"))

        answers = await asyncio.gather(
            *(one.book.register(registration(incarnation=name)) for name in ("i-1", "i-2")),
            return_exceptions=True,
        )

        (refused,) = (error for error in answers if isinstance(error, Conflict))
        stored = await one.stored("dn-1")
        assert stored is not None
        assert refused.code == "stale-incarnation"
        assert refused.facts == {"node_id": "dn-1", "current": stored.incarnation}
        assert one.book.heartbeat(beat(1, incarnation=stored.incarnation)).sequence == 1


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
        await one.committer.commit(told(Txn.on(seen).put(key, seen.must(key)), created))
        one.clock.advance(60_000)

        answer = one.book.heartbeat(beat(1, stat(REGION)))

        assert [grant.region_id for grant in answer.grants] == [REGION]
        assert answer.catalog_version == one.follower.catalog.version
        assert (answer.term, answer.lease_ms) == (one.committer.term, LEASE_MS)
        assert one.book.free_in_ms("dn-1", [REGION]) == 11_500


async def test_given_a_node_without_its_thousands_of_regions_then_an_answer_is_bounded() -> None:
    """The node carries out no more orders at once, and an answer longer than 64 MiB is refused."""
    tables = range(1_024, 1_024 + 2 * INSTRUCTIONS_MAX)
    async with office() as one:
        await one.book.register(registration())
        key = NodeKey("datanode", "dn-1")
        for some in slices(tables, ENTRIES_AT_ONCE):
            seen = await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)
            txn = Txn.on(seen).put(key, seen.must(key))
            for id in some:
                created = TableCreated(info=info(id, f"t{id}"), route=route("dn-1", id))
                txn = told(txn, created)
            await one.committer.commit(txn)

        answers = [one.book.heartbeat(beat(sequence)) for sequence in (1, 2)]

    opened = [order.region_id for answer in answers for order in answer.instructions]
    assert [len(answer.instructions) for answer in answers] == [INSTRUCTIONS_MAX] * 2
    assert len(set(opened)) == len(tables)
    assert INSTRUCTIONS_MAX <= REQUEST_ORDERS_MAX


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


async def test_given_processes_that_register_and_never_beat_then_the_node_is_dead() -> None:
    async with office() as one:
        await one.book.register(registration())
        for sequence in range(20):
            one.clock.advance(2_000)
            one.book.heartbeat(beat(sequence))

        states = []
        for number in range(3):
            one.clock.advance(6_000)
            states.append(one.book.node("dn-1").state)
            await one.book.register(registration(incarnation=f"i-{number}"))
            states.append(one.book.node("dn-1").state)
        one.book.heartbeat(beat(0, incarnation="i-2"))
        one.clock.advance(2_000)
        states.append(one.book.node("dn-1").state)
        one.clock.advance(60_000)
        states.append(one.book.node("dn-1").state)

        first = [NodeState.SUSPECT, NodeState.ALIVE]
        second = [NodeState.SUSPECT, NodeState.SUSPECT]
        third = [NodeState.DEAD, NodeState.ALIVE]
        assert states == [*first, *second, *third, NodeState.ALIVE, NodeState.DEAD]


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
