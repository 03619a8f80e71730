"""A request to cancel, at any moment of a procedure and of its client."""

import asyncio

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable, Unknown
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.submit import SubmitRequest
from tests.fakes.faults import Mode
from tests.procedures.harness.gates import Gate
from tests.procedures.harness.leader_office import OPERATOR, Office, office


def test_given_a_procedure_that_runs_when_cancelled_then_it_is_undone() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.settle()

        first = await at.cancel("a")
        again = await at.cancel("a")
        at.let("undo a")

        assert isinstance(first, ActiveProcedure)
        assert first is again
        assert first.held.record.cancel
        assert (await at.end("a")).outcome is ProcedureOutcome.CANCELLED
        assert at.gates.ran.count("undo a") == 1

    office(scenario)


def test_given_a_procedure_that_waits_for_a_lock_when_cancelled_then_it_ends_at_once() -> None:
    """It never began, so there is nothing to undo, and nothing to wait for."""

    async def scenario(at: Office) -> None:
        await at.submit("holder", "table:1")
        await at.submit("a", "table:1")
        await at.settle()

        ended = await at.cancel("a")

        assert isinstance(ended, ProcedureHistory)
        assert (ended.outcome, ended.last.cancel) == (ProcedureOutcome.CANCELLED, True)
        assert [one.by for one in ended.last.controls] == ["ops"]
        assert at.gates.ran == ["holder"]

    office(scenario)


@pytest.mark.case("input 82")
def test_given_the_point_of_no_return_when_cancelled_then_409_and_it_goes_on() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        at.let("a")
        await at.settle()

        with pytest.raises(Conflict) as past:
            await at.cancel("a")
        at.let("a again")

        assert past.value.code == "past-point-of-no-return"
        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED

    office(scenario)


def test_given_a_procedure_that_is_over_or_never_was_when_cancelled_then_it_says_so() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        at.let("a", "a again")
        await at.end("a")
        at.names["never"] = at.cluster.ids.procedure_id()

        with pytest.raises(Conflict) as over:
            await at.cancel("a")
        with pytest.raises(NotFound):
            await at.cancel("never")
        assert over.value.code == "action-not-allowed"

    office(scenario)


@pytest.mark.parametrize("turns", range(8))
def test_given_a_client_that_hangs_up_when_cancelling_then_the_procedure_still_ends(
    turns: int,
) -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()
        asked = at.cluster.loop.spawn("client", at.cancel("a"))
        for _ in range(turns):
            await asyncio.sleep(0)
        asked.cancel()
        await at.settle()
        at.let("a", "a again", "undo a")

        assert (await at.end("a")).outcome in (
            ProcedureOutcome.SUCCEEDED,
            ProcedureOutcome.CANCELLED,
        )

    office(scenario)


def test_given_a_store_that_is_away_when_cancelled_then_503_and_the_step_goes_on() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()
        plan = at.server.plan
        plan.armed, plan.at = True, 0
        plan.mode = Mode.LOST_REQUEST

        with pytest.raises(Unavailable):
            await at.cancel("a")
        at.let("a", "a again")

        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED

    office(scenario)


def test_given_a_leader_that_dies_while_it_cancels_then_the_next_one_undoes() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()
        await at.cancel("a")

        await at.next_leader()
        at.let("undo a")

        assert (await at.end("a")).outcome is ProcedureOutcome.CANCELLED

    office(scenario)


def test_given_a_deposed_leader_when_asked_then_an_error_and_never_a_hang() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.cluster.start("meta-2")
        old = at.server.manager
        kind, state = at.cluster.kinds["gate"], Gate(name="b")

        for _ in range(3):
            request = SubmitRequest(at.cluster.ids.procedure_id(), OPERATOR, "")
            with pytest.raises(MetaError) as error:
                await old.submit(kind, state, request)
            assert isinstance(error.value, Conflict | Unavailable | Unknown)
        assert request.procedure not in at.cluster.living()

    office(scenario)
