"""Every control in every state: what the table says is what happens, now and at the next leader."""

from collections.abc import Awaitable, Callable

import pytest

from keys.commit.txn import Txn, snapshot
from keys.model.poison import PoisonKey
from keys.model.records import ProcedureHistory, ProcedureKey, ProcedureOutcome, ProcedureRecord
from keys.value import decode
from metasrv_base.errors import Conflict, NotFound, Unavailable
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import FULFILLED, LEADS, Control, Next, State
from procedures.engine.retry import UNDO_MS
from tests.fakes.faults import Mode
from tests.procedures.harness.leader_office import SMALL, Office, office

POISON = bytes(PoisonKey("gate:a"))
AWAY = Unavailable(what="node", name="dn-1")


async def queued(at: Office) -> None:
    await at.submit("x")
    await at.submit("y")
    await at.submit("a")


async def waiting(at: Office) -> None:
    await at.submit("holder", "table:1")
    await at.submit("a", "table:1")


async def running(at: Office) -> None:
    await at.submit("a")


async def retrying(at: Office) -> None:
    at.gates.trouble["a"] = AWAY
    await at.submit("a")


async def paused(at: Office) -> None:
    await at.submit("a")
    await at.settle()
    await at.control(Control.PAUSE, "a")


async def cancelling(at: Office) -> None:
    await at.submit("a")
    await at.settle()
    await at.cancel("a")


async def rolling_back(at: Office) -> None:
    at.gates.trouble["a"] = Conflict("already-exists")
    await at.submit("a")


async def poisoned(at: Office) -> None:
    at.gates.trouble["undo a"] = AWAY
    await rolling_back(at)
    await at.cluster.clock.sleep_ms(2 * UNDO_MS)


async def parked(at: Office) -> None:
    at.gates.fails.add("a")
    await at.submit("a")


Given = Callable[[Office], Awaitable[None]]
STATES: dict[State, Given] = {
    State.QUEUED: queued,
    State.WAITING: waiting,
    State.RUNNING: running,
    State.RETRYING: retrying,
    State.PAUSED: paused,
    State.CANCELLING: cancelling,
    State.ROLLING_BACK: rolling_back,
    State.POISONED: poisoned,
    State.PARKED: parked,
}
CELLS = [(state, control) for state in State for control in Control]
LASTING = {State.PAUSED, State.CANCELLING, State.ROLLING_BACK, State.POISONED}
"""States that are in the record: the next leader shows them too."""


def now_of(found: ActiveProcedure | ProcedureHistory) -> Next:
    return found.outcome if isinstance(found, ProcedureHistory) else found.state


@pytest.mark.parametrize(("state", "control"), CELLS, ids=[f"{s}-{c}" for s, c in CELLS])
def test_given_a_state_when_a_control_comes_then_it_leads_to_what_the_table_says(
    state: State, control: Control
) -> None:
    async def scenario(at: Office) -> None:
        await STATES[state](at)
        await at.settle()
        assert at.state("a") is state
        before = at.cluster.stored()

        if control not in LEADS[state] and control not in FULFILLED.get(state, ()):
            with pytest.raises(Conflict) as refused:
                await at.control(control, "a", percent=50)
            assert refused.value.code == "action-not-allowed"
            assert at.state("a") is state
            assert at.cluster.stored() == before
            return
        at.gates.fails.clear()
        found = await at.control(control, "a", percent=50)

        wanted = LEADS[state].get(control, (state,))
        assert now_of(found) in wanted
        if control in FULFILLED.get(state, ()):
            assert at.cluster.stored() == before
        await same_at_the_next_leader(at, now_of(found))

    office(scenario, SMALL)


async def same_at_the_next_leader(at: Office, now: Next) -> None:
    """An answered control is in the store: whoever leads next knows it."""
    await at.next_leader()
    found = await at.cluster.leader.manager.find(at.names["a"])
    if isinstance(now, ProcedureOutcome) or now in LASTING:
        assert now_of(found) is now
    else:
        assert now_of(found) in (State.QUEUED, State.WAITING, State.RUNNING, State.RETRYING)


@pytest.mark.parametrize("control", list(Control))
def test_given_an_end_or_nothing_when_a_control_comes_then_it_says_so(control: Control) -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        at.let("a", "a again")
        await at.end("a")
        at.names["never"] = at.cluster.ids.procedure_id()

        with pytest.raises(Conflict) as over:
            await at.control(control, "a")
        with pytest.raises(NotFound):
            await at.control(control, "never")

        assert over.value.code == "action-not-allowed"
        assert over.value.facts["state"] == "it is succeeded"

    office(scenario)


def test_given_the_table_then_every_state_has_its_row_and_no_control_is_in_both() -> None:
    assert LEADS.keys() == set(State) == STATES.keys()
    assert all(not LEADS[state].keys() & done for state, done in FULFILLED.items())
    assert {control for row in LEADS.values() for control in row} == set(Control)


# Pause ------------------------------------------------------------------------------------------


def test_given_a_pause_then_it_keeps_its_locks_gives_its_place_and_loses_no_time() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.submit("b", "table:1")
        await at.settle()
        await at.control(Control.PAUSE, "a")
        paused_for = 10 * at.cluster.kinds["gate"].deadline_ms
        await at.submit("c")
        await at.submit("d")
        await at.settle()
        assert at.states("a", "b", "c", "d") == ["paused", "waiting", "running", "queued"]

        await at.cluster.clock.sleep_ms(paused_for)
        at.let("c", "c again", "d", "d again", "a", "a again")
        await at.control(Control.RESUME, "a")

        ended = await at.end("a")
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert [one.action for one in ended.last.controls] == ["pause", "resume"]
        over = ended.last.deadline_at_ms - ended.last.submitted_at_ms
        assert over >= paused_for

    one_place = type(SMALL)(dict.fromkeys(SMALL.running_max, 1), queue_max=9)
    office(scenario, one_place)


# Throttle ---------------------------------------------------------------------------------------


def test_given_a_throttle_when_a_step_runs_then_it_goes_on_and_its_commit_stands() -> None:
    """The control's write moves the record beside the step; its work is not thrown away."""

    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()

        await at.control(Control.THROTTLE, "a", percent=50)
        at.let("a", "a again")

        ended = await at.end("a")
        assert ended.last.throttle_percent == 50
        assert at.gates.ran == ["a", "a again"]

    office(scenario)


# Retry ------------------------------------------------------------------------------------------


def test_given_a_pause_between_attempts_when_retried_then_it_is_tried_at_once() -> None:
    async def scenario(at: Office) -> None:
        await retrying(at)
        await at.cluster.clock.sleep_ms(25_000)  # the pauses are long by now
        del at.gates.trouble["a"]
        tried = len(at.gates.ran)
        at.let("a", "a again")

        await at.control(Control.RETRY, "a")
        await at.settle()

        assert at.gates.ran[tried:] == ["a", "a again"]

    office(scenario)


# Poison -----------------------------------------------------------------------------------------


def stored_record(at: Office) -> ProcedureRecord:
    key = ProcedureKey(at.names["a"])
    return decode(ProcedureRecord, at.cluster.stored()[bytes(key)], key=str(key))


def test_given_an_undo_that_cannot_finish_then_its_resource_is_poisoned_in_one_transaction() -> (
    None
):
    async def scenario(at: Office) -> None:
        at.gates.trouble["undo a"] = AWAY
        at.gates.trouble["a"] = Conflict("already-exists")
        await at.submit("a", "table:1", "route:1")
        await at.settle()
        assert (at.state("a"), POISON in at.cluster.stored()) == ("rolling_back", False)
        await at.cluster.clock.sleep_ms(2 * UNDO_MS)

        await at.submit("ddl", "table:1")
        await at.submit("failover", "route:1")
        await at.settle()

        assert stored_record(at).poisoned
        assert "procedure_poisoned" in [one["event"] for one in at.logs]
        assert POISON in at.cluster.stored()
        assert at.states("a", "ddl", "failover") == ["poisoned", "waiting", "running"]
        await at.next_leader()
        await at.settle()
        assert at.states("a", "ddl", "failover") == ["poisoned", "waiting", "running"]

    office(scenario)


@pytest.mark.parametrize("control", [Control.RETRY, Control.CLEAR])
def test_given_a_poison_when_retried_or_cleared_then_it_is_gone_and_history_says_by_whom(
    control: Control,
) -> None:
    async def scenario(at: Office) -> None:
        await poisoned(at)
        del at.gates.trouble["undo a"]
        at.let("undo a")

        await at.control(control, "a")
        ended = await at.end("a")

        assert POISON not in at.cluster.stored()
        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        (mark,) = ended.last.controls
        assert (mark.action, mark.by, mark.reason) == (control, "ops", "because")
        assert ended.last.error is not None
        assert ended.last.error.code == "already-exists"

    office(scenario)


# Deadlines --------------------------------------------------------------------------------------


def test_given_a_step_that_hangs_then_its_deadline_ends_it_and_it_is_undone() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        at.let("undo a")
        await at.cluster.clock.sleep_ms(at.cluster.kinds["gate"].deadline_ms + 5_000)

        ended = await at.end("a")

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert ended.last.error is not None
        assert (ended.last.error.code, ended.last.error.facts) == (
            "deadline-exceeded",
            {"step": "first"},
        )

    office(scenario)


def test_given_a_step_that_had_failed_when_its_deadline_ends_it_then_it_says_why() -> None:
    async def scenario(at: Office) -> None:
        at.gates.trouble["a"] = Unavailable("not-ready", nodes=["dn-1"])
        at.let("undo a")
        await at.submit("a")
        await at.cluster.clock.sleep_ms(1_000)
        del at.gates.trouble["a"]
        await at.cluster.clock.sleep_ms(at.cluster.kinds["gate"].deadline_ms + 5_000)

        error = (await at.end("a")).last.error

        assert error is not None
        assert error.code == "deadline-exceeded"
        last = {"last_error": "not-ready", "last_facts": {"nodes": ["dn-1"]}}
        assert error.facts == {"step": "first", **last}

    office(scenario)


def test_given_locks_that_never_come_then_the_deadline_ends_the_wait() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("holder", "table:1")
        at.let("holder")  # past its point of no return: it has no deadline
        await at.submit("a", "table:1")
        await at.cluster.clock.sleep_ms(at.cluster.kinds["gate"].deadline_ms + 5_000)

        ended = await at.end("a")

        assert ended.outcome is ProcedureOutcome.FAILED
        assert ended.last.error is not None
        assert ended.last.error.code == "deadline-exceeded"
        assert ended.last.error.facts == {"waiting_for": [at.names["holder"]]}
        assert "a" not in at.gates.ran

    office(scenario)


@pytest.mark.parametrize("lost", range(4))
def test_given_a_record_that_moved_when_its_time_is_over_then_no_lost_call_ends_the_term(
    lost: int,
) -> None:
    async def scenario(at: Office) -> None:
        await at.submit("holder", "table:1")
        at.let("holder")
        await at.submit("a", "table:1")
        leader, key = at.cluster.leader, ProcedureKey(at.names["a"])
        seen = await snapshot(at.cluster.kv, key, deadline_ms=1_000)
        record = seen.get(key)
        assert record is not None
        await at.cluster.change(leader.fence, Txn.on(seen).put(key, record))
        await at.cluster.clock.sleep_ms(at.cluster.kinds["gate"].deadline_ms - 1_500)
        leader.plan.mode, leader.plan.at, leader.plan.armed = Mode.LOST_REQUEST, lost, True
        await at.cluster.clock.sleep_ms(15_000)

        assert (await at.end("a")).outcome is ProcedureOutcome.FAILED
        assert at.cluster.leader is leader
        assert not leader.ended.is_set()
        assert leader.plan.happened

    office(scenario)


def test_given_a_step_that_does_not_move_then_it_is_called_stalled() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        at.let("a")
        await at.settle()
        entry = at.cluster.leader.manager.entry(at.names["a"])
        assert entry is not None
        assert not entry.stalled

        await at.cluster.clock.sleep_ms(64_000)

        assert entry.stalled
        assert [one["event"] for one in at.logs].count("procedure_stalled") == 1

    office(scenario)
