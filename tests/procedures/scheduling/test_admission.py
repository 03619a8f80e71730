"""The number of procedures that run at once, and the time of the next attempt of a step: pure."""

from hypothesis import given
from hypothesis import strategies as st

from keys.commit.committer import StaleRead
from keys.commit.txn import Stamp
from keys.model.records import ClientRequirements, ProcedurePhase
from metasrv_base.errors import (
    Conflict,
    MetaError,
    NotFound,
    NotLeader,
    Refused,
    Unavailable,
    Unknown,
)
from procedures.engine import record_transitions
from procedures.engine.retry import UNDO_MS, Tries, deadline_of, is_passing, pause_ms
from procedures.kinds.registry import KINDS
from procedures.machine import AdmissionLane
from procedures.scheduling.admission import Limits, WaitingProcedure, WaitingRoom
from tests.procedures.harness.scenarios import SCENARIOS

LIMITS = Limits(running_max={AdmissionLane.DDL: 2, AdmissionLane.REPAIR: 1}, queue_max=4)
CANDIDATES = st.lists(
    st.builds(
        WaitingProcedure,
        procedure=st.uuids().map(str),
        submission=st.integers(0, 1000),
        lane=st.sampled_from(AdmissionLane),
        only_waits=st.booleans(),
    ),
    unique_by=(lambda one: one.submission, lambda one: one.procedure),
)


@given(CANDIDATES, st.data())
def test_given_any_candidates_then_the_oldest_start_and_no_lane_runs_too_many(
    candidates: list[WaitingProcedure], data: st.DataObject
) -> None:
    running = data.draw(st.lists(st.sampled_from(candidates), unique_by=id)) if candidates else []
    waiting = [one for one in candidates if one not in running]
    room = WaitingRoom()
    for one in data.draw(st.permutations(waiting)):
        room.enter(one)
        room.enter(one)
    gone = {one.procedure for one in waiting[::3]}

    started = room.admit(running, LIMITS, lambda procedure: procedure not in gone)

    assert len(set(started)) == len(started)
    here = [one for one in waiting if one.procedure not in gone]
    for lane, limit in LIMITS.running_max.items():
        before = sum(one.lane is lane and not one.only_waits for one in running)
        mine = [one for one in here if one.lane is lane and not one.only_waits]
        new = [one for one in mine if one.procedure in started]
        left = [one for one in mine if one.procedure not in started]
        assert before + len(new) <= max(limit, before)
        assert not left or before + len(new) >= limit
        assert all(a.submission < b.submission for a in new for b in left)
    assert all(one.procedure in started for one in here if one.only_waits)
    assert not gone & set(started)


def test_given_a_full_ddl_lane_then_repair_starts_and_parents_that_wait_take_no_place() -> None:
    ddl = [WaitingProcedure(f"d{n}", n, AdmissionLane.DDL, only_waits=False) for n in range(2)]
    parent = WaitingProcedure("parent", 5, AdmissionLane.REPAIR, only_waits=True)
    room = WaitingRoom()
    room.enter(WaitingProcedure("child", 6, AdmissionLane.REPAIR, only_waits=False))
    room.enter(WaitingProcedure("late", 7, AdmissionLane.DDL, only_waits=False))

    def anybody(procedure: str) -> bool:
        return True

    assert room.admit([*ddl, parent], LIMITS, anybody) == ("child",)
    assert room.admit([parent], LIMITS, anybody) == ("late",)


def test_given_an_error_then_its_class_says_whether_the_step_is_run_again() -> None:
    again: list[MetaError] = [Unavailable(), Unknown(), StaleRead()]
    never: list[MetaError] = [Refused(), NotFound(), Conflict(), NotLeader()]

    assert all(is_passing(error) for error in again)
    assert not any(is_passing(error) for error in never)


@given(st.integers(1, 200), st.floats(0, 1, exclude_max=True))
def test_given_any_attempt_then_the_pause_is_bounded(attempt: int, noise: float) -> None:
    assert 0 <= pause_ms(Unavailable(), attempt, noise) <= 10_000
    assert 0 <= pause_ms(StaleRead(), attempt, noise) <= 1_000


def test_given_the_point_of_no_return_then_from_there_on_there_is_no_deadline() -> None:
    client = ClientRequirements(submitted_by="a", request_id="r", statement={})
    stamp = Stamp(catalog_version=None, submission=1, at_ms=1_000)
    for scenario in SCENARIOS:
        kind = KINDS[scenario.kind]
        record = record_transitions.begin(kind, scenario.state, client, stamp)
        past = record.model_copy(update={"trail": (kind.no_return,)})
        back = record.model_copy(update={"phase": ProcedurePhase.UNDO})

        assert deadline_of(kind, record) == 1_000 + kind.deadline_ms
        assert deadline_of(kind, past) is None
        assert deadline_of(kind, back) is None
        spent = Tries(spent_ms=UNDO_MS - 1)
        assert spent.left_ms(kind, back, now_ms=10 * UNDO_MS) == 1
        assert not spent.are_over(kind, back, Refused(), now_ms=10 * UNDO_MS)
