"""Cases 28-54: what becomes of a step, of its record, and of what it did."""

import pytest

from keys.commit.committer import StaleRead
from keys.model.records import (
    Lock,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedureOutcome,
)
from metasrv_base.errors import MetaError, Refused, Unavailable
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.registry import KINDS
from procedures.locking.holding import LockClaim, holders
from procedures.locking.locks import exclusive, shared
from tests.conformance.looking import puts_of
from tests.conformance.trouble import Trouble, troubled
from tests.fakes.faults import Mode
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.leader_office import OPERATOR, SMALL, Office
from tests.procedures.kinds.failover.runs import children_of

FOR_A_WHILE = Unavailable(what="test")
FOR_GOOD = Refused(reason="test")
LOST_RACE = StaleRead(key="test")


def steps_of(at: Office, name: str) -> list[tuple[str, str]]:
    """Phase and step of every record that was stored of it."""
    puts = puts_of(at.cluster, ProcedureKey(at.names[name]))
    return [(put["phase"], put["step"]) for put in puts]


@pytest.mark.case("greptime 28", "greptime 58")
def test_given_two_steps_when_done_then_a_record_after_each_and_the_end_in_its_place() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        await at.submit("a")
        at.let("a")
        await at.settle()
        between = at.cluster.stored().keys()
        at.let("a again")
        await at.end("a")
        after = at.cluster.stored().keys()

        record = bytes(ProcedureKey(at.names["a"]))
        history = bytes(ProcedureHistoryKey(at.names["a"]))
        assert steps_of(at, "a") == [("forward", "first"), ("forward", "second")]
        assert (record in between, history in between) == (True, False)
        assert (record in after, history in after) == (False, True)
        events = [e for entry in at.cluster.kv._store.log_from(1) for e in entry.events]
        gone = [e.mod_revision for e in events if e.key == record and e.value is None]
        kept = [e.mod_revision for e in events if e.key == history]
        assert (len(kept), kept) == (1, gone), "one transaction"

    troubled(scenario)


@pytest.mark.case("greptime 31")
def test_given_a_parent_when_its_children_are_over_then_it_goes_on_and_nothing_is_held() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        request = SubmitRequest(at.cluster.ids.procedure_id(), OPERATOR, "")
        manager = at.cluster.leader.manager
        await manager.submit(
            KINDS["failover_node"], FailoverNode(node="dn-1", reason="test"), request
        )
        parent = await manager.wait(request.procedure, deadline_ms=600_000)

        assert isinstance(parent, ProcedureHistory)
        children = children_of(at.cluster, request.procedure).values()
        assert len(children) == 2
        for child in children:
            found = await manager.find(child)
            assert isinstance(found, ProcedureHistory)
            assert found.outcome is ProcedureOutcome.SUCCEEDED
            assert found.finished_at_ms <= parent.finished_at_ms
        assert manager.living() == ()
        assert at.cluster.living() == []

    troubled(scenario)


@pytest.mark.case("greptime 42")
def test_given_children_that_do_not_succeed_then_the_parent_tells_and_nothing_is_held() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        request = SubmitRequest(at.cluster.ids.procedure_id(), OPERATOR, "")
        manager = at.cluster.leader.manager
        state = FailoverNode(node="dn-1", reason="test", targets=("dn-9",))  # nobody can take them
        await manager.submit(KINDS["failover_node"], state, request)
        while len(manager.living()) < 3:
            await at.cluster.clock.sleep_ms(10)
        for child in {name for name, _ in manager.living()} - {request.procedure}:
            at.names[child] = child
            await at.cancel(child)
        history = await manager.wait(request.procedure, deadline_ms=60_000)

        assert isinstance(history, ProcedureHistory)
        assert sorted((history.result or {})["left"]) == [TABLE, OTHER]
        assert manager.living() == ()
        assert at.cluster.living() == []

    troubled(scenario)


@pytest.mark.case("greptime 32")
def test_given_a_term_that_ends_between_steps_then_the_record_stands_as_it_was() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        await at.submit("a")
        at.let("a")
        await at.settle()
        key = bytes(ProcedureKey(at.names["a"]))
        before = at.cluster.stored()[key]

        await at.cluster.elect("meta-2")
        await at.server.ended.wait()

        assert at.cluster.stored()[key] == before

    troubled(scenario)


@pytest.mark.case("greptime 33")
def test_given_a_term_that_ends_while_a_step_fails_then_nothing_is_undone_by_it() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors["a"] = [FOR_A_WHILE] * 3 + [FOR_GOOD]
        await at.submit("a")
        await at.cluster.elect("meta-2")
        await at.server.ended.wait()

        assert steps_of(at, "a") == [("forward", "first")]
        assert "undo a" not in gates.ran

    troubled(scenario)


@pytest.mark.case("greptime 18", "greptime 35")
def test_given_a_step_that_fails_for_good_then_it_is_undone_visibly_and_its_error_is_kept() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors["a"] = [FOR_GOOD]
        await at.submit("a")
        await at.settle()
        undoing = at.state("a")
        at.let("undo a")
        history = await at.end("a")

        assert undoing == "rolling_back"
        assert steps_of(at, "a") == [("forward", "first"), ("undo", "first")]
        assert history.outcome is ProcedureOutcome.ROLLED_BACK
        assert history.last.error is not None
        assert (history.last.error.code, history.last.error.facts) == (
            FOR_GOOD.code,
            {"reason": "test"},
        )
        assert gates.ran == ["a failed", "undo a"]

    troubled(scenario)


@pytest.mark.case("greptime 36", "greptime 37", "greptime 64")
def test_given_a_step_that_fails_for_a_while_then_it_is_retried_visibly_and_succeeds() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors["a"] = [FOR_A_WHILE, FOR_A_WHILE]
        at.let("a again")
        await at.submit("a")
        await at.settle()
        retrying = at.state("a")
        while gates.ran.count("a failed") < 2 or "a" not in gates.ran:
            await at.settle()
        at.let("a")
        history = await at.end("a")  # it was waited for through all of this

        assert retrying == "retrying"
        assert history.outcome is ProcedureOutcome.SUCCEEDED
        assert gates.attempts[:3] == [1, 2, 3]
        assert steps_of(at, "a") == [("forward", "first"), ("forward", "second")]

    troubled(scenario)


@pytest.mark.case("greptime 39", "greptime 41", "online 72")
@pytest.mark.case("catalog 5")
@pytest.mark.parametrize("error", [FOR_A_WHILE, LOST_RACE], ids=["unavailable", "a lost race"])
def test_given_a_step_that_fails_for_ever_then_its_deadline_ends_it_and_it_is_undone_once(
    error: MetaError,
) -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors["a"] = [error] * 1_000
        at.let("undo a")
        await at.submit("a")
        history = await at.end("a")

        assert history.outcome is ProcedureOutcome.ROLLED_BACK
        assert history.last.error is not None
        assert history.last.error.code == error.code
        assert gates.ran.count("undo a") == 1
        took_ms = history.finished_at_ms - history.last.submitted_at_ms
        assert 5_000 <= took_ms <= 5_000 + 11_000  # the deadline, and one pause at most

    troubled(scenario, deadline_ms=5_000)


@pytest.mark.case("greptime 40")
def test_given_an_undo_that_fails_for_a_while_then_it_is_not_given_up() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors = {"a": [FOR_GOOD], "undo a": [FOR_A_WHILE] * 6}
        at.let("undo a")
        await at.submit("a", "table:1")
        await at.submit("b", "table:1")
        await at.settle()
        waits = at.state("b")
        history = await at.cluster.leader.manager.wait(at.names["a"], deadline_ms=600_000)

        assert waits == "waiting"  # what is half undone keeps its lock
        assert isinstance(history, ProcedureHistory)
        assert history.outcome is ProcedureOutcome.ROLLED_BACK
        assert gates.ran.count("undo a failed") == 6

    troubled(scenario)


@pytest.mark.case("greptime 52")
def test_given_a_failure_for_good_then_the_undo_begins_at_once() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors["a"] = [FOR_GOOD]
        at.let("undo a")
        await at.submit("a")
        history = await at.end("a")

        assert history.finished_at_ms - history.last.submitted_at_ms < 100  # no pause is due

    troubled(scenario)


@pytest.mark.case("greptime 53")
def test_given_progress_between_failures_then_the_attempts_are_counted_anew() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors = {"a": [FOR_A_WHILE] * 3, "a again": [FOR_A_WHILE] * 3}
        at.let("a", "a again")
        await at.submit("a")
        await at.end("a")

        assert gates.attempts == [1, 2, 3, 4, 1, 2, 3, 4]

    troubled(scenario)


def test_given_a_store_that_fails_at_a_commit_then_the_next_step_waits_for_its_record() -> None:
    """Not among the numbers: there the record may come after the next step's effects."""

    async def scenario(at: Office, gates: Trouble) -> None:
        await at.submit("a")
        await at.settle()
        plan = at.server.plan
        plan.armed, plan.at, plan.mode = True, 0, Mode.LOST_REQUEST
        at.let("a", "a again")
        await at.end("a")

        assert plan.happened
        assert gates.ran == ["a", "a", "a again"]  # the step is run again, not passed over
        assert steps_of(at, "a") == [("forward", "first"), ("forward", "second")]

    troubled(scenario)


def test_given_procedures_that_met_a_mistake_of_ours_then_they_take_no_place() -> None:
    """Not among the numbers: there a panic keeps its place for ever."""

    async def scenario(at: Office, gates: Trouble) -> None:
        gates.fails |= {"a", "b"}
        for name in ("a", "b", "c"):
            await at.submit(name)
        at.let("c", "c again")

        assert (await at.end("c")).outcome is ProcedureOutcome.SUCCEEDED
        assert [at.state(name) for name in ("a", "b")] == ["parked", "parked"]

    troubled(scenario, SMALL)


@pytest.mark.case("greptime 59")
def test_given_one_that_runs_one_over_and_one_undone_when_led_on_then_each_is_told_apart() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.errors["c"] = [FOR_GOOD]
        at.let("a", "b", "b again")
        for name in ("a", "b", "c"):
            await at.submit(name)
        await at.end("b")
        await at.settle()

        manager = (await at.next_leader()).manager
        await at.settle()

        assert [at.state(name) for name in ("a", "c")] == ["running", "rolling_back"]
        assert [name for name, _ in manager.living()] == [at.names["a"], at.names["c"]]
        assert dict(manager.living())[at.names["a"]].held.record.step == "second"
        assert isinstance(await manager.find(at.names["b"]), ProcedureHistory)

    troubled(scenario)


@pytest.mark.case("greptime 51")
@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (shared("a"), shared("a"), False),
        (shared("a"), exclusive("a"), True),
        (exclusive("a"), shared("a"), True),
        (exclusive("a"), exclusive("a"), True),
        (exclusive("a"), exclusive("b"), False),
    ],
)
def test_given_two_modes_then_the_later_one_waits_or_not(
    first: Lock, second: Lock, waits: bool
) -> None:
    claims = [LockClaim("p", 1, (first,)), LockClaim("q", 2, (second,))]

    assert [block.by for block in holders(claims)["q"]] == (["p"] if waits else [])


@pytest.mark.case("greptime 48")
def test_given_two_that_want_one_key_then_the_second_waits_for_the_first() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        await at.submit("a", "table:1")
        await at.submit("b", "table:1")
        await at.settle()
        waits = at.state("b")
        at.let("b", "b again", "a", "a again")
        await at.end("b")

        assert waits == "waiting"
        assert gates.ran == ["a", "a again", "b", "b again"]

    troubled(scenario)


@pytest.mark.case("greptime 30")
def test_given_a_step_that_repeats_itself_then_it_is_run_again_at_once() -> None:
    async def scenario(at: Office, gates: Trouble) -> None:
        gates.repeats = 3
        at.let("a", "a again")
        await at.submit("a")
        history = await at.end("a")

        assert gates.ran == ["a", "a", "a", "a", "a again"]
        assert steps_of(at, "a") == [("forward", "first")] * 4 + [("forward", "second")]
        assert history.finished_at_ms - history.last.submitted_at_ms < 100  # no pause

    troubled(scenario)
