"""All procedures paused: nothing begins a step, what is in flight ends, nothing is lost."""

import pytest

from keys.model.records import ProcedureOutcome
from procedures.scheduling.manager import Manager
from tests.procedures.harness.leader_office import Office, office


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

        assert [end.outcome for end in ends] == [ProcedureOutcome.SUCCEEDED] * 2
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

        assert (await at.end("a")).outcome is ProcedureOutcome.CANCELLED

    office(scenario)


PAUSE_MS = 3_600_000  # longer than any deadline of the office


@pytest.mark.slow
@pytest.mark.parametrize("led_by_another", [False, True])
def test_given_a_pause_longer_than_the_deadlines_when_over_then_nothing_has_expired(
    led_by_another: bool,
) -> None:
    async def scenario(at: Office) -> None:
        clock, gate = at.cluster.clock, at.server.manager.gate
        await at.submit("a", "table:1")
        await at.submit("b", "table:1")
        since_ms = clock.wall_ms()
        gate.close("backup", since_ms)
        await clock.sleep_ms(PAUSE_MS)
        if led_by_another:
            gate = (await at.next_leader()).manager.gate
            gate.close("backup", since_ms)
            await clock.sleep_ms(PAUSE_MS)
        gate.open(clock.wall_ms() - since_ms)
        at.let("a", "a again", "b", "b again")

        ends = [await at.end("a"), await at.end("b")]

        assert [end.outcome for end in ends] == [ProcedureOutcome.SUCCEEDED] * 2

    office(scenario)


def test_given_a_pause_that_is_over_when_submitted_then_it_lends_no_time() -> None:
    async def scenario(at: Office) -> None:
        at.server.manager.gate.open(PAUSE_MS)
        at.let("undo a")
        await at.submit("a", "table:1")
        await at.cluster.clock.sleep_ms(PAUSE_MS // 10)

        assert (await at.end("a")).outcome is ProcedureOutcome.ROLLED_BACK

    office(scenario)
