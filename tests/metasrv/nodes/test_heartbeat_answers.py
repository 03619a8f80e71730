"""Grants by number: as long as nothing has changed, and no longer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dataplane.datanode.membership.reports import NodeReports
from keys.commit.txn import Txn, snapshot
from keys.model.cluster import NodeKey
from keys.model.log import Entry, RouteChanged, TableCreated
from metasrv.nodes import heartbeat_answers
from metasrv_base.concurrency.turns import at_once
from metasrv_base.wire.node.nodes import HeartbeatAnswer, RegionStat
from metasrv_base.wire.node.orders import CloseRegion
from tests.keys.commit.changes import told
from tests.metasrv.nodes.leader import DEADLINE_MS, LEASE_MS, Office, beat, office, registration
from tests.metasrv.nodes.samples import info, route, stat

REGION = "4398046511104"
WAIT_MS = 11_500


class ReportingNode:
    """A node's side: what it sends, and what it was granted."""

    def __init__(self, one: Office) -> None:
        self.one, self.reports, self.sequence = one, NodeReports(), 0
        self.granted: list[tuple[int, int]] = []

    def beats(self, *stats: RegionStat) -> HeartbeatAnswer:
        self.sequence += 1
        facts = self.reports.facts(self.sequence, stats)
        answer = self.one.book.heartbeat(beat(self.sequence).model_copy(update=facts))
        self.granted = list(self.reports.answered(answer))
        return answer


async def commit(one: Office, entry: Entry) -> None:
    key = NodeKey("datanode", "dn-1")
    seen = await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)
    await one.committer.commit(told(Txn.on(seen).put(key, seen.must(key)), entry))


@asynccontextmanager
async def settled() -> AsyncIterator[tuple[Office, ReportingNode]]:
    """A node with one region, which was granted it in an answer that stands."""
    async with office() as one:
        await one.book.register(registration())
        await commit(one, TableCreated(info=info(), route=route("dn-1")))
        one.clock.advance(60_000)
        node = ReportingNode(one)
        assert [grant.region_id for grant in node.beats(stat(REGION)).grants] == [REGION]
        yield one, node


async def test_given_nothing_new_when_it_beats_then_all_is_granted_and_no_region_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with settled() as (one, node):
        monkeypatch.delattr(heartbeat_answers, "reconcile")
        one.clock.advance(2_000)

        answer = node.beats(stat(REGION).model_copy(update={"rows": 5}))

        assert (answer.renews, answer.grants) == (1, [])
        assert node.granted == [(int(REGION), 1)]
        assert one.book.free_in_ms("dn-1", [REGION]) == WAIT_MS
        assert one.book.node("dn-1").regions[REGION].rows == 5


@pytest.mark.parametrize("away_ms", [WAIT_MS, 10 * WAIT_MS])
async def test_given_grants_that_have_ended_when_it_beats_then_they_are_granted_anew(
    away_ms: int,
) -> None:
    async with settled() as (one, node):
        one.clock.advance(away_ms)
        at_once(one.book.leases.forget(one.clock.mono_ms()))

        answer = node.beats(stat(REGION))

        assert (answer.renews, [grant.region_id for grant in answer.grants]) == (None, [REGION])
        assert one.book.free_in_ms("dn-1", [REGION]) == WAIT_MS


async def test_given_a_region_given_to_another_when_it_beats_then_it_is_granted_no_more() -> None:
    async with settled() as (one, node):
        moved = route("dn-2", epoch=2).region_routes
        await commit(one, RouteChanged(table_id=1024, version=2, regions=moved))
        one.clock.advance(2_000)

        answer = node.beats(stat(REGION))

        assert (answer.renews, answer.grants, node.granted) == (None, [], [])
        assert [type(order) for order in answer.instructions] == [CloseRegion]
        assert one.book.free_in_ms("dn-1", [REGION]) == WAIT_MS - 2_000


async def test_given_an_answer_that_was_lost_when_it_beats_then_grants_are_named_again() -> None:
    async with settled() as (_one, node):
        node.reports = NodeReports()  # as before the first answer

        answer = node.beats(stat(REGION))

        assert answer.renews is None
        assert node.granted == [(int(REGION), 1)]


async def test_given_a_region_that_closed_when_it_beats_then_it_is_looked_at_again() -> None:
    async with settled() as (_one, node):
        answer = node.beats()

        assert (answer.renews, answer.grants, answer.is_kept) == (None, [], True)
        assert [order.region_id for order in answer.instructions] == [REGION]
        again = node.beats()
        assert again.renews is None, "it still waits for the region"


async def test_given_a_node_released_from_quarantine_when_it_beats_then_looked_at_again() -> None:
    async with settled() as (one, node):
        await one.book.set_labels("dn-1", {"disk": "ssd"})

        assert node.beats(stat(REGION)).renews is None
        assert node.beats(stat(REGION)).renews == 2


async def test_given_another_process_of_the_node_when_it_beats_then_nothing_is_known_of_it() -> (
    None
):
    async with settled() as (one, node):
        await one.book.register(registration(incarnation="i-2"))
        facts = node.reports.facts(2, [stat(REGION)])
        request = beat(2, incarnation="i-2").model_copy(update=facts)

        answer = one.book.heartbeat(request)

        assert (answer.wants_whole, answer.renews, answer.grants) == (True, None, [])


async def test_given_a_node_of_before_when_it_beats_then_it_is_answered_in_its_words() -> None:
    async with settled() as (one, _node):
        request = beat(2, stat(REGION)).model_copy(update={"format": 2})

        answer = one.book.heartbeat(request)

        assert [grant.region_id for grant in answer.grants] == [REGION]
        assert not {"renews", "is_kept", "wants_whole"} & set(answer.model_dump())
        assert answer.lease_ms == LEASE_MS
