"""The resume matrix: every kind is paused before each of its commits, and resumed while the commit
of that pause is in doubt. It ends as if nobody had asked.
"""

import pytest

from keys.commit.txn import Stamp
from keys.model.records import Controlled, ProcedureHistory, ProcedureOutcome, ProcedureRecord
from procedures.engine import record_transitions
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command, is_fulfilled
from procedures.scheduling.manager import Manager
from tests.crash.cancelling import ONLY_ONE, SOUND
from tests.crash.resuming import LOST, Life, lived
from tests.procedures.harness.scenario import Scenario

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("scenario", SOUND, ids=lambda scenario: scenario.name)
def test_given_any_commit_when_resumed_beside_a_pause_in_doubt_then_it_ends_as_without(
    scenario: Scenario,
) -> None:
    sound = lived(scenario, -1)
    lives = {at: lived(scenario, at) for at in range(1, sound.commits)}

    wrong = {f"before commit {at}": life.wrong for at, life in lives.items() if life.wrong}
    assert (sound.outcome, sound.wrong, wrong) == (ProcedureOutcome.SUCCEEDED, (), {})
    assert {life.outcome for life in lives.values()} <= {ProcedureOutcome.SUCCEEDED}
    assert any(life.lost == len(LOST) for life in lives.values()) or sound.commits == ONLY_ONE


def lives_of(name: str) -> list[Life]:
    (scenario,) = [one for one in SOUND if one.name == name]
    return [lived(scenario, at) for at in range(1, lived(scenario, -1).commits)]


def test_given_a_resume_that_is_answered_beside_the_mailbox_then_the_matrix_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It looks as if it were not paused, for nobody knows what became of the pause."""
    sound = Manager._post

    async def post(
        self: Manager, entry: ActiveProcedure, command: Command | None
    ) -> ActiveProcedure | ProcedureHistory:
        if command is not None and is_fulfilled(entry.facts, command.control):
            return entry
        return await sound(self, entry, command)

    monkeypatch.setattr(Manager, "_post", post)

    assert any("never ends" in life.wrong for life in lives_of("alter_table"))


def test_given_a_resume_that_forgets_how_long_it_was_paused_then_the_matrix_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = record_transitions.resume

    def resume(record: ProcedureRecord, mark: Controlled, stamp: Stamp) -> ProcedureRecord:
        update = {"deadline_at_ms": record.deadline_at_ms - 1}
        return sound(record, mark, stamp).model_copy(update=update)

    monkeypatch.setattr(record_transitions, "resume", resume)

    wrong = [text for life in lives_of("alter_table") for text in life.wrong]
    assert any("its deadline moves by -1" in text for text in wrong)
