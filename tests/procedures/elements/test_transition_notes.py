"""Transitions in a record: each once, with the holders that were late, and bounded in number."""

from collections.abc import Iterable

import pytest

from keys.commit.txn import Stamp
from keys.model.records import ProcedureOutcome
from keys.model.tables import Constraint, ConstraintKind
from keys.model.transitions import LATE_MAX, TRANSITIONS_MAX, LateHolder, Transition, Went
from metasrv_base.elements.states import ElementState
from procedures.elements.shifts import shifts
from procedures.elements.transition_notes import (
    Drained,
    Passages,
    Published,
    TransitionNote,
    drained,
    kept,
)
from procedures.engine.control import Control
from procedures.kinds.alter.alter_operations import AddColumnOperation, DropNotNull
from procedures.ports import Drain
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.online import wide_info
from tests.procedures.kinds.alter.online import HOLDER, Change, online

SEATS = AddColumnOperation(name="seats", type="int32", nullable=False, default=100)
STAMP = Stamp(catalog_version=9, submission=1, at_ms=5_000)


def published(version: int, told_ms: int = 3) -> Published:
    return Published(TABLE, version, (), regions=1, told_ms=told_ms)


def record_of(
    passages: Iterable[TransitionNote], before: Iterable[Transition] = ()
) -> list[Transition]:
    return list(kept(tuple(before), passages, STAMP))


def test_given_a_transition_when_it_is_drained_steps_later_then_it_is_one_with_both_times() -> None:
    late = LateHolder(holder="fe-1", ms=7, went=Went.FOLLOWED)
    before = record_of([published(2)])

    (one,) = record_of([Drained(TABLE, 2, at_ms=6_000, holders=3, late=(late,))], before)

    assert (one.schema_version, one.catalog_version, one.published_at_ms) == (2, 9, 5_000)
    assert (one.drained_at_ms, one.holders, one.late) == (6_000, 3, (late,))


def test_given_what_it_has_already_then_nothing_is_published_or_drained_a_second_time() -> None:
    before = record_of([published(2), Drained(TABLE, 2, at_ms=6_000, holders=3)])

    after = record_of([published(2, told_ms=99), Drained(TABLE, 2, 7_000, holders=9)], before)

    assert after == before


def test_given_a_version_of_before_this_record_when_drained_then_it_is_not_its_own() -> None:
    assert record_of([Drained(TABLE, 1, at_ms=6_000, holders=3)]) == []


def test_given_more_transitions_than_it_keeps_then_the_last_ones_stay() -> None:
    found = record_of(published(version) for version in range(TRANSITIONS_MAX + 5))

    assert [one.schema_version for one in found] == list(range(5, TRANSITIONS_MAX + 5))


def test_given_more_late_holders_than_it_keeps_then_the_slowest_stay() -> None:
    late = [LateHolder(holder=f"fe-{n}", ms=n, went=Went.FOLLOWED) for n in range(LATE_MAX + 3)]

    found = drained(TABLE, 2, Drain(50, tuple(late)), at_ms=1)

    assert [one.ms for one in found.late] == list(range(LATE_MAX + 2, 2, -1))
    assert found.holders == 50


def test_given_an_attempt_that_was_not_committed_then_the_last_one_published_and_first_waited() -> (
    None
):
    passages = Passages()
    for told_ms in (1, 2):
        passages.note(published(3, told_ms))
        passages.note(Drained(TABLE, 2, at_ms=told_ms, holders=1))

    assert passages.all() == (published(3, 2), Drained(TABLE, 2, at_ms=1, holders=1))


def test_given_a_column_that_is_never_null_when_relaxed_then_its_constraint_was_public() -> None:
    info = wide_info()
    rule = Constraint(
        id=1,
        name="code_not_null_1",
        kind=ConstraintKind.NOT_NULL,
        columns=(4,),
        state=ElementState.WRITE_ONLY,
    )
    relaxed = [c.model_copy(update={"nullable": True}) for c in info.columns if c.id == 4]
    columns = tuple([c for c in info.columns if c.id != 4] + relaxed)
    going = info.model_copy(update={"constraints": (rule,), "columns": columns})

    (out,), (gone,) = (
        shifts(info, going),
        shifts(going, going.model_copy(update={"constraints": ()})),
    )

    assert (out.what, out.before, out.after) == ("constraint", "public", "write-only")
    assert (gone.before, gone.after) == ("write-only", "absent")


def test_given_a_change_when_it_is_over_then_its_history_says_each_version_and_who_was_late() -> (
    None
):
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        change = await at.submit(SEATS, DropNotNull(name="code"))
        await at.cluster.clock.sleep_ms(5_000)
        at.cluster.holders.lets_go(HOLDER, TABLE)

        last = (await change.end()).last

        first, second, third = last.transitions
        assert [one.schema_version for one in last.transitions] == [2, 3, 4]
        assert [(s.what, s.name, s.before, s.after) for s in first.shifts] == [
            ("column", "seats", "absent", "delete-only"),
            ("constraint", "code_not_null_1", "public", "write-only"),
        ]
        assert [(s.what, s.after) for s in second.shifts] == [("column", "write-only")]
        assert {(s.name, s.after) for s in third.shifts} == {
            ("seats", "public"),
            ("code_not_null_1", "absent"),
        }
        (late,) = first.late
        assert (late.holder, late.transaction, late.went) == (HOLDER, "t-1", Went.FOLLOWED)
        assert late.ms >= 4_000
        versions = [one.catalog_version or 0 for one in last.transitions]
        assert versions == sorted(set(versions))
        assert all(one.regions == 1 and one.drained_at_ms is not None for one in last.transitions)
        assert all(one.late == () for one in (second, third))

    online(scenario)


@pytest.mark.parametrize("led_on", [False, True])
def test_given_a_change_that_is_cancelled_when_undone_then_its_way_back_is_in_the_history(
    led_on: bool,
) -> None:
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        change = await at.submit(SEATS)
        await at.settle()
        if led_on:
            at.cluster.loop.kill(at.cluster.leader.node)
            await at.cluster.started("meta-2")
            await at.settle()

        await change.control(Control.CANCEL)
        at.cluster.holders.dies(HOLDER)
        ended = await change.end()

        there, back = ended.last.transitions
        assert ended.outcome is ProcedureOutcome.CANCELLED
        assert [(s.before, s.after) for s in there.shifts] == [("absent", "delete-only")]
        assert [(s.before, s.after) for s in back.shifts] == [("delete-only", "absent")]
        assert [(one.holder, one.went) for one in there.late] == [(HOLDER, Went.REMOVED)]
        assert there.drained_at_ms is not None
        assert there.drained_at_ms >= there.published_at_ms

    online(scenario)
