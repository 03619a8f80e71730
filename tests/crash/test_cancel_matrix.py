"""The cancel matrix: every kind, cancelled just before and just behind each of its commits.

It ends as if it had never been asked for, or the attempt is refused and it ends as it would have.
"""

from dataclasses import replace

import pytest

from keys.model.records import ProcedureOutcome
from procedures.engine import control
from procedures.kinds.registry import KINDS
from tests.crash.cancelling import ONLY_ONE, SOUND, lived
from tests.crash.planted import with_step
from tests.procedures.harness.scenario import Scenario

pytestmark = pytest.mark.crash


def is_over_at_once(scenario: Scenario) -> bool:
    """Its first commit is the one that cannot be undone."""
    kind = KINDS[scenario.kind]
    return kind.no_return == kind.first


@pytest.mark.parametrize("scenario", SOUND, ids=lambda scenario: scenario.name)
@pytest.mark.case("online 67-68")
def test_given_any_commit_when_cancelled_before_or_behind_it_then_it_never_was_or_goes_on(
    scenario: Scenario,
) -> None:
    sound = lived(scenario, -1, "before")
    cells = {
        f"cancelled {moment} commit {at}": lived(scenario, at, moment)
        for at in range(sound.commits)
        for moment in ("before", "behind")
        if (at, moment) != (0, "before")  # there is nothing to be cancelled yet
    }

    wrong = {name: life.wrong for name, life in cells.items() if life.wrong}
    assert (sound.outcome, sound.wrong, wrong) == (ProcedureOutcome.SUCCEEDED, (), {})
    ends = {life.outcome for life in cells.values()}
    may_be = {ProcedureOutcome.SUCCEEDED, ProcedureOutcome.CANCELLED}
    assert ProcedureOutcome.SUCCEEDED in ends <= may_be
    assert ends == may_be or sound.commits == ONLY_ONE or is_over_at_once(scenario)


def test_given_the_kinds_then_each_is_cancelled_somewhere() -> None:
    assert {one.kind for one in SOUND} == KINDS.keys()


def test_given_a_kind_that_forgets_to_undo_a_step_then_the_matrix_finds_it() -> None:
    (scenario,) = [one for one in SOUND if one.name == "alter_table, a column added"]
    kinds = with_step("alter_table", "advance", undo=None)
    commits = lived(scenario, -1, "before", kinds).commits

    cells = [lived(scenario, at, "behind", kinds) for at in range(commits)]

    assert any("differs" in wrong for life in cells for wrong in life.wrong)


def test_given_a_cancel_that_is_taken_behind_the_commit_then_the_matrix_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (scenario,) = [one for one in SOUND if one.name == "rename_table"]
    monkeypatch.setattr(control, "_refusal", cancelled_late)
    commits = lived(scenario, -1, "before").commits

    cells = [lived(scenario, at, "before") for at in range(1, commits)]

    assert any("log entries ['table.renamed'], not ()" in life.wrong for life in cells)


_REFUSAL = control._refusal


def cancelled_late(facts: control.ControlInput, asked: control.Control) -> str | None:
    """Cancels after the point of no return all the same."""
    return _REFUSAL(replace(facts, has_passed=False), asked)
