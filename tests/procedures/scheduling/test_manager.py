"""Submitting, queueing and admission, as clients of one leader after another see it."""

import asyncio

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from metasrv_base.errors import Refused, Unavailable
from procedures.engine.submit import SubmitRequest, Submitted
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.registry import KINDS
from tests.procedures.harness.leader_office import OPERATOR, SMALL, Office, office


def test_given_a_submission_when_answered_then_it_is_in_the_store() -> None:
    async def scenario(at: Office) -> None:
        submitted = await at.submit("a")

        assert at.cluster.living() == [submitted.procedure]
        at.let("a", "a again")
        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED

    office(scenario)


@pytest.mark.case("catalog 150")
def test_given_a_known_key_when_submitted_again_then_the_same_procedure_alive_or_over() -> None:
    async def scenario(at: Office) -> None:
        first = await at.submit("a", key="1")
        again = await at.submit("a", key="1")
        at.let("a", "a again")
        await at.end("a")
        await at.next_leader()
        later = await at.submit("a", key="1")

        assert first.replayed is False
        assert {again, later} == {Submitted(first.procedure, replayed=True)}

    office(scenario)


def test_given_a_known_key_when_another_request_comes_then_refused() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", key="1")

        with pytest.raises(Refused) as refused:
            await at.submit("a", key="1", body="another")
        assert refused.value.code == "idempotency-key-reused"

    office(scenario)


@pytest.mark.case("catalog 149")
def test_given_two_at_once_with_one_key_then_one_procedure() -> None:
    async def scenario(at: Office) -> None:
        found = await asyncio.gather(*(at.submit("a", key="1") for _ in range(3)))

        assert len({one.procedure for one in found}) == 1
        assert sorted(one.replayed for one in found) == [False, True, True]

    office(scenario)


def test_given_a_full_queue_then_429_but_a_known_key_is_answered_and_repair_runs() -> None:
    async def scenario(at: Office) -> None:
        for name in ("a", "b", "c"):
            await at.submit(name, key=name)

        with pytest.raises(Unavailable) as full:
            await at.submit("d")
        again = await at.submit("a", key="a")
        request = SubmitRequest(at.cluster.ids.procedure_id(), OPERATOR, "")
        state = FailoverNode(node="dn-1", reason="test")
        await at.cluster.leader.manager.submit(KINDS["failover_node"], state, request)

        assert full.value.code == "too-many-procedures"
        assert again.procedure == at.names["a"]
        history = await at.cluster.leader.manager.wait(request.procedure, deadline_ms=600_000)
        assert isinstance(history, ProcedureHistory)  # one place, a parent and two children
        assert history.outcome is ProcedureOutcome.SUCCEEDED

    office(scenario, SMALL)


def test_given_many_at_once_then_no_more_than_the_queue_holds() -> None:
    async def scenario(at: Office) -> None:
        asked = (at.submit(str(number)) for number in range(9))
        found = await asyncio.gather(*asked, return_exceptions=True)

        assert sum(isinstance(one, Submitted) for one in found) == SMALL.queue_max
        assert len(at.cluster.living()) == SMALL.queue_max

    office(scenario, SMALL)


@pytest.mark.case("greptime 26")
def test_given_a_full_queue_when_the_leader_dies_then_the_next_has_it_in_the_same_order() -> None:
    async def scenario(at: Office) -> None:
        for name in ("a", "b", "c"):
            await at.submit(name)
        before = [procedure for procedure, _ in at.cluster.leader.manager.living()]

        manager = (await at.next_leader()).manager

        assert [procedure for procedure, _ in manager.living()] == before
        assert [at.state(name) for name in ("a", "b", "c")] == ["running", "running", "queued"]
        with pytest.raises(Unavailable):
            await at.submit("d")
        at.let("a", "a again", "b", "b again", "c", "c again")
        for name in ("a", "b", "c"):
            assert (await at.end(name)).outcome is ProcedureOutcome.SUCCEEDED

    office(scenario, SMALL)


def test_given_a_client_that_hangs_up_when_submitting_then_what_is_stored_is_known() -> None:
    async def scenario(at: Office) -> None:
        asked = at.cluster.loop.spawn("client", at.submit("a", "table:1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asked.cancel()
        await at.submit("b", "table:1")
        await at.settle()

        states = [entry.state for _, entry in at.cluster.leader.manager.living()]
        assert sorted(states) in (["running", "waiting"], ["running"])
        assert len(states) == len(at.cluster.living())

    office(scenario)


@pytest.mark.case("greptime 19")
def test_given_a_term_that_has_not_begun_then_nothing_is_admitted() -> None:
    async def scenario(at: Office) -> None:
        at.cluster.loop.kill(at.server.node)
        server = await at.cluster.start("meta-2")
        while server.leads is None:
            await at.cluster.clock.sleep_ms(0)
        if not server.ready.is_set():
            with pytest.raises(Unavailable):
                await at.submit("a")
        await server.ready.wait()

        assert (await at.submit("a")).replayed is False

    office(scenario)
