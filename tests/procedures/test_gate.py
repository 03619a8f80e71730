"""All procedures paused: nothing begins a step, what is in flight ends, nothing is lost."""

import pytest

from keys.records import Outcome
from procedures.manager import Manager
from tests.procedures.office import Office, office


def waits(manager: Manager, procedure: str) -> list[tuple[str, str]]:
    entry = dict(manager.living())[procedure]
    return [(wait.kind, wait.holder) for wait in entry.live.waiting]


@pytest.mark.case("greptime 24")
def test_given_a_step_in_flight_when_paused_then_it_ends_and_the_next_one_waits() -> None:
    async def scenario(at: Office) -> None:
        gate = at.server.manager.gate
        await at.submit("a", "table:1")
        await at.settle()
        gate.close("backup")
        await at.submit("b", "table:2")
        at.let("a", "a again", "b", "b again")
        await at.settle()

        assert at.gates.ran == ["a"]
        assert waits(at.server.manager, at.names["a"]) == [("maintenance", "backup")]
        assert waits(at.server.manager, at.names["b"]) == [("maintenance", "backup")]

        gate.open()
        ends = [await at.end("a"), await at.end("b")]

        assert [end.outcome for end in ends] == [Outcome.SUCCEEDED] * 2
        assert at.gates.ran == ["a", "b", "a again", "b again"]

    office(scenario)


def test_given_a_paused_procedure_when_cancelled_then_its_undo_waits_too() -> None:
    async def scenario(at: Office) -> None:
        gate = at.server.manager.gate
        gate.close(None)
        await at.submit("a", "table:1")
        await at.settle()
        await at.cancel("a")
        at.let("undo a")
        await at.settle()

        assert at.gates.ran == []

        gate.open()

        assert (await at.end("a")).outcome is Outcome.CANCELLED

    office(scenario)
