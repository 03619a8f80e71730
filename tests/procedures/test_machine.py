"""Kinds as tables, and how a record moves along them: pure."""

import pytest

from keys.commit.txn import Stamp
from keys.model.records import (
    ClientRequirements,
    Controlled,
    Lock,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    Resource,
    TimelineEntry,
)
from metasrv_base.errors import Conflict
from procedures.context import Context
from procedures.engine import record_transitions
from procedures.kinds.diagrams import pages
from procedures.kinds.registry import KINDS
from procedures.machine import Done, Goto, Kind, ProcedureState, Step

STAMP = Stamp(catalog_version=7, submission=3, at_ms=1_000)
CANCEL = Controlled(action="cancel", by="anna", at_ms=1)
QUIET = Stamp(catalog_version=None, submission=4, at_ms=2_000)
BEAT = TimelineEntry(step="a", at_ms=1, ms=1)
CLIENT = ClientRequirements(submitted_by="anna", request_id="r", statement={})


class Count(ProcedureState):
    n: int = 0


async def act(state: Count, at: Context) -> Done[Count]:
    return Done(state, {})


def no_locks(state: Count) -> tuple[Lock, ...]:
    return ()


def resource(state: Count) -> Resource:
    return Resource(type="t", id="1", name="n")


STEPS: dict[str, Step[Count]] = {
    "a": Step(act, to=frozenset({"b"})),
    "b": Step(act, to=frozenset({"b", "c"}), ends=True),
    "c": Step(act),
}
KIND = Kind(
    name="k",
    state=Count,
    steps=STEPS,
    no_return="b",
    locks=no_locks,
    resource=resource,
    success=200,
    deadline_ms=500,
)
BEGUN = record_transitions.begin(KIND, Count(), CLIENT, STAMP)


def at(step: str, **changes: object) -> ProcedureRecord:
    return BEGUN.model_copy(update={"step": step, **changes})


def test_given_a_submission_then_the_record_begins_with_its_number_and_deadline() -> None:
    assert (BEGUN.step, BEGUN.submission, BEGUN.deadline_at_ms) == ("a", 3, 1_500)
    assert BEGUN.phase is ProcedurePhase.FORWARD


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", STEPS)
def test_given_any_two_steps_when_followed_then_only_edges_of_the_table_are_taken(
    step: str, after: str
) -> None:
    if step in STEPS[after].to:
        assert (
            record_transitions.follow(KIND, at(after), Goto(step, Count()), BEAT, QUIET).step
            == step
        )
    else:
        with pytest.raises(AssertionError):
            record_transitions.follow(KIND, at(after), Goto(step, Count()), BEAT, QUIET)


def test_given_a_step_that_may_not_be_the_last_when_it_ends_then_it_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        record_transitions.succeeded(KIND, at("a"), {}, BEAT, QUIET)

    assert (
        record_transitions.succeeded(KIND, at("b"), {}, BEAT, QUIET).outcome
        is ProcedureOutcome.SUCCEEDED
    )
    assert (
        record_transitions.succeeded(KIND, at("c"), {}, BEAT, QUIET).outcome
        is ProcedureOutcome.SUCCEEDED
    )


def test_given_a_step_that_repeats_then_its_trail_stays_and_its_version_is_kept() -> None:
    first = record_transitions.follow(KIND, BEGUN, Goto("b", Count()), BEAT, STAMP)
    again = record_transitions.follow(KIND, first, Goto("b", Count(n=1)), BEAT, QUIET)

    assert again.trail == ("a",)
    assert (again.state, again.catalog_version) == ({"n": 1}, 7)


def test_given_an_error_when_undone_then_the_trail_is_walked_backwards_to_the_end() -> None:
    record = at("c", trail=("a", "b"))

    back = record_transitions.turn_back(record, Conflict("already-exists", name={1, 2}), QUIET)
    second = record_transitions.undone(back, BEAT)
    assert second is not None
    third = record_transitions.undone(second, BEAT)
    assert third is not None

    assert (back.step, second.step, third.step) == ("c", "b", "a")
    assert record_transitions.undone(third, BEAT) is None
    assert back.error is not None
    assert back.error.facts == {"name": str({1, 2})}


@pytest.mark.parametrize(
    ("cancel", "had_effect", "outcome"),
    [
        (True, True, ProcedureOutcome.CANCELLED),
        (True, False, ProcedureOutcome.CANCELLED),
        (False, True, ProcedureOutcome.ROLLED_BACK),
        (False, False, ProcedureOutcome.FAILED),
    ],
)
def test_given_an_undo_when_over_then_its_outcome_says_why(
    cancel: bool, had_effect: bool, outcome: ProcedureOutcome
) -> None:
    record = record_transitions.turn_back(BEGUN, CANCEL if cancel else Conflict(), QUIET)

    assert (
        record_transitions.ended_undone(record, BEAT, QUIET, had_effect=had_effect).outcome
        is outcome
    )


def test_given_a_record_that_is_undone_then_it_never_goes_forward_again() -> None:
    back = record_transitions.turn_back(at("b", trail=("a",)), CANCEL, QUIET)

    with pytest.raises(AssertionError):
        record_transitions.follow(KIND, back, Goto("c", Count()), BEAT, QUIET)
    with pytest.raises(AssertionError):
        record_transitions.succeeded(KIND, back, {}, BEAT, QUIET)
    with pytest.raises(AssertionError):
        record_transitions.turn_back(back, CANCEL, QUIET)
    with pytest.raises(AssertionError):
        record_transitions.ended_undone(back, BEAT, QUIET, had_effect=True)


def test_given_many_beats_then_the_timeline_stays_bounded() -> None:
    record = at("b")
    for _ in range(200):
        record = record_transitions.follow(KIND, record, Goto("b", Count()), BEAT, QUIET)

    assert len(record.timeline) == 64


@pytest.mark.parametrize("name", KINDS)
def test_given_a_kind_then_every_step_can_be_reached_and_can_reach_the_end(name: str) -> None:
    kind = KINDS[name]
    reached, waiting = set(), [kind.first]
    while waiting:
        step = waiting.pop()
        if step not in reached:
            reached.add(step)
            waiting += kind.steps[step].to

    assert reached == set(kind.steps)
    assert any(kind.may_end(step) for step in kind.steps)
    assert kind.name == name


def test_given_the_kinds_then_their_pages_are_made_from_the_tables() -> None:
    found = pages()

    assert set(found) == {f"docs/procedures/{name}.md" for name in (*KINDS, "README")}
    assert "reroute --> await_lease" in found["docs/procedures/failover_table.md"]
    assert "look --> [*]" in found["docs/procedures/failover_node.md"]


def test_given_the_pages_of_kinds_then_each_begins_with_a_sentence_of_its_own() -> None:
    texts = {name: pages()[f"docs/procedures/{name}.md"].split("\n\n")[2] for name in KINDS}

    assert all(text.startswith(f"{name}: ") for name, text in texts.items())
    assert len(set(texts.values())) == len(KINDS)
