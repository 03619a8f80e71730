"""A copy reports a silent leader: whoever hears it keeps it, and else a copy leads next."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from keys.model.records import ClientRequirements
from keys.model.tables import CopyRole, RegionRoute
from metasrv.nodes.silent_leaders import CUT_OFF_MS
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.node.silences import LeaderHeard
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.kinds.failover.failover_table import FAILOVER_TABLE
from tests.metasrv.api.rig import CLUSTER, Server, leader
from tests.metasrv.service.cluster.copied import copied_region, region_now

NOBODY: Mapping[str, int | None] = {}


@dataclass
class Probe:
    """Answers of nodes by id: the silence of the leader there. Others answer nothing."""

    server: Server
    answers: Mapping[str, int | None] = field(default_factory=dict)
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()
        self.server.state.term = replace(self.server.term, probe=self)

    async def silence_at(self, address: str, leader: str, deadline_ms: int) -> LeaderHeard:
        nodes = self.server.term.nodes
        (node,) = (each for each in ("dn-1", "dn-2", "dn-3") if nodes.address_of(each) == address)
        self.asked.append(node)
        self.was_asked.set()
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        if node not in self.answers:
            raise Unavailable("not-ready", what=address, sent=False)
        return LeaderHeard(silent_ms=self.answers[node])


def report_of(region: RegionRoute, reporter: str, **more: Any) -> dict[str, Any]:
    facts = {
        "cluster_id": CLUSTER,
        "node_id": reporter,
        "incarnation": "i-1",
        "leader": region.leader,
        "silent_ms": 1_000,
        "region_id": [region.region_id],
        "epoch": [region.epoch],
    }
    return {**facts, **more}


async def report(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    url = f"/internal/v1/nodes/{body['node_id']}/silent-leaders"
    answer = await server.client.post(url, json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def failovers(server: Server) -> int:
    answer = await server.client.get("/v1/procedures", params={"kind": FAILOVER_TABLE.name})
    assert answer.status_code == 200, answer.text
    return len(answer.json()["procedures"])


async def test_given_a_leader_that_answers_nobody_when_reported_then_the_copy_leads_next() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        copy = region.copies[0]
        probe = Probe(server, NOBODY)

        answer = await report(server, report_of(region, copy.node))

        assert answer["verdict"] == "promote"
        assert probe.asked == [region.leader], "there is no third copy in the set"
        assert len(answer["procedure_ids"]) == 1
        while region_now(server, region).epoch == region.epoch:
            await server.term.manager.changed(deadline_ms=1_000)
        now = region_now(server, region)
        assert (now.leader, now.root, now.epoch) == (copy.node, copy.root, region.epoch + 1)
        assert now.borrows == ()

        again = await report(server, report_of(region, copy.node))
        assert again == {"verdict": "over", "procedure_ids": []}
        assert await failovers(server) == 1


@pytest.mark.parametrize("error", [None, Refused("unauthenticated")], ids=["answers", "refuses"])
async def test_given_a_leader_that_metasrv_hears_when_reported_then_it_leads_on(
    error: Exception | None,
) -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        Probe(server, {region.leader: None}, error)

        answer = await report(server, report_of(region, region.copies[0].node))

        assert answer == {"verdict": "alive", "procedure_ids": []}
        assert await failovers(server) == 0


async def test_given_a_leader_that_no_copy_hears_when_reported_then_one_of_them_leads_next() -> (
    None
):
    async with leader(nodes=3) as server:
        region = await copied_region(server, (CopyRole.IN_SYNC, CopyRole.IN_SYNC))
        first, second = (copy.node for copy in region.copies)
        probe = Probe(server, {region.leader: None, second: CUT_OFF_MS})
        for_a_moment = report_of(region, first, silent_ms=CUT_OFF_MS - 1)
        assert (await report(server, for_a_moment))["verdict"] == "alive"

        answer = await report(server, report_of(region, first, silent_ms=CUT_OFF_MS))

        assert answer["verdict"] == "promote"
        assert set(probe.asked) == {region.leader, second}
        while region_now(server, region).epoch == region.epoch:
            await server.term.manager.changed(deadline_ms=1_000)
        assert region_now(server, region).leader in (first, second)


@pytest.mark.parametrize(
    "changes", [{"epoch": [9]}, {"region_id": ["4611686018427387904"]}, {"leader": "dn-9"}]
)
async def test_given_a_report_of_what_is_not_so_then_nobody_is_asked(
    changes: dict[str, Any],
) -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        probe = Probe(server, NOBODY)

        answer = await report(server, report_of(region, region.copies[0].node, **changes))

        assert answer["verdict"] == "over"
        assert probe.asked == []


async def test_given_a_learner_when_it_reports_then_it_is_not_promoted() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        Probe(server, NOBODY)

        answer = await report(server, report_of(region, region.copies[1].node))

        assert answer["verdict"] == "over"


async def test_given_a_look_under_way_when_reported_again_then_one_look_is_made() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        probe = Probe(server, NOBODY)
        probe.may_answer.clear()
        body = report_of(region, region.copies[0].node)

        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(report(server, body))
            await probe.was_asked.wait()
            second = await report(server, body)
            probe.may_answer.set()

        assert second["verdict"] == "held"
        assert first.result()["verdict"] == "promote"
        assert probe.asked == [region.leader]
        assert await failovers(server) == 1


async def test_given_a_failover_of_the_node_that_does_not_end_then_the_copy_leads_next() -> None:
    """It waits for the files of a table that were lost when the node died before."""
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        Probe(server, NOBODY)
        server.term.ports.gate.close("test")
        earlier = FailoverNode(node=region.leader, reason="test")
        client = ClientRequirements(submitted_by="test", request_id="", statement={})
        request = SubmitRequest(server.state.ids.procedure_id(), client, "")
        await server.term.manager.submit(FAILOVER_NODE, earlier, request)

        answer = await report(server, report_of(region, region.copies[0].node))

        assert (answer["verdict"], len(answer["procedure_ids"])) == ("promote", 1)


async def test_given_a_process_of_before_when_it_reports_then_it_is_not_heard() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        Probe(server, NOBODY)
        body = report_of(region, region.copies[0].node, incarnation="i-0")

        url = f"/internal/v1/nodes/{body['node_id']}/silent-leaders"
        answer = await server.client.post(url, json=body)

        assert answer.status_code == 410
        assert answer.json()["code"] == "stale-incarnation"
