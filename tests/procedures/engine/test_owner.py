"""The one task that owns a procedure: what it does when controls, commits and rests cross."""

import asyncio
from dataclasses import dataclass, field

import pytest

from keys.commit.txn import Txn, snapshot
from keys.model.records import ProcedureHistory, ProcedureKey, ProcedureOutcome
from keys.store.kv import Kv, Request, TxnAnswer
from metasrv_base.errors import Conflict, MetaError, Unavailable
from procedures.engine.active_procedure import LETTERS_MAX, ActiveProcedure
from procedures.engine.control import Control, State
from procedures.engine.retry import UNDO_MS
from procedures.machine import AdmissionLane
from procedures.scheduling.admission import Limits
from tests.crash.planted import Client
from tests.fakes.faults import Mode
from tests.procedures.harness.leader_office import Office, office

AWAY = Unavailable(what="node", name="dn-1")


@dataclass
class Slow(Client):
    """Keeps commits on the way until they are let go; may be deaf to reads of one's record."""

    holds: bool = False
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    deaf: int = 0
    """So many of those reads are not answered."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        if request.writes and self.holds:
            await self.go_on.wait()
        if self.deaf and not request.writes and is_of_a_record(request):
            self.deaf -= 1
            raise Unavailable(call="txn", grpc="DEADLINE_EXCEEDED")
        return await super().txn(request, deadline_ms=deadline_ms)


def is_of_a_record(request: Request) -> bool:
    return any(get.key.startswith(b"__procedure/") for get in request.reads)


@dataclass
class Stores:
    """Every server's way to the store."""

    made: list[Slow] = field(default_factory=list)

    def __call__(self, kv: Kv) -> Kv:
        self.made.append(Slow(kv))
        return self.made[-1]


CONTROLS = (Control.CANCEL, Control.PAUSE, Control.THROTTLE)


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("step", ["first", "second"])
def test_given_a_commit_on_its_way_when_a_control_comes_then_its_outcome_is_known_first(
    control: Control, step: str
) -> None:
    """Whoever went on from the record of before would be refused for ever."""
    stores = Stores()

    async def scenario(at: Office) -> None:
        (store,) = stores.made
        await at.submit("a", "table:1")
        await at.settle()
        if step == "second":
            at.let("a")
            await at.settle()
        store.holds, store.deaf = True, 3
        at.let("a" if step == "first" else "a again")
        await at.settle()
        asked = at.cluster.loop.spawn("client", at.control(control, "a", percent=50))
        await at.settle()
        assert not asked.done()
        store.holds = False
        store.go_on.set()
        await asyncio.wait([asked])
        told = asked.exception()

        if control is Control.CANCEL or step == "second":
            assert isinstance(told, Conflict)
        else:
            assert told is None
        if told is None and control is Control.PAUSE:
            assert at.state("a") is State.PAUSED
            await at.control(Control.RESUME, "a")
        at.let("a again")
        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED
        assert at.gates.ran == ["a", "a again"]
        await at.submit("b", "table:1")
        await at.settle()
        assert at.state("b") is State.RUNNING

    office(scenario, client=stores)


@pytest.mark.parametrize("deaf", [0, 1, 5])
def test_given_a_record_that_moved_beside_its_owner_when_it_commits_then_it_is_read_again(
    deaf: int,
) -> None:
    stores = Stores()

    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()
        leader, key = at.cluster.leader, ProcedureKey(at.names["a"])
        seen = await snapshot(at.cluster.kv, key, deadline_ms=1_000)
        record = seen.get(key)
        assert record is not None
        await at.cluster.change(leader.fence, Txn.on(seen).put(key, record))
        stores.made[0].deaf = deaf
        at.let("a", "a again")

        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED
        assert at.gates.ran == ["a", "a", "a again"]

    office(scenario, client=stores)


def test_given_a_store_that_takes_no_control_when_a_step_runs_then_it_is_not_begun_again() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()
        plan = at.server.plan
        plan.armed, plan.at, plan.mode = True, 0, Mode.LOST_REQUEST

        with pytest.raises(Unavailable):
            await at.control(Control.PAUSE, "a")
        at.let("a", "a again")

        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED
        assert at.gates.ran == ["a", "a again"]

    office(scenario)


def test_given_controls_at_once_then_each_is_answered_in_its_turn_and_one_too_many_is_refused() -> (
    None
):
    stores = Stores()

    async def scenario(at: Office) -> None:
        await at.submit("a")
        await at.settle()
        (store,) = stores.made
        store.holds = True
        turns = [Control.PAUSE, Control.RESUME] * (LETTERS_MAX // 2)
        first = at.cluster.loop.spawn("client", at.control(Control.THROTTLE, "a", percent=1))
        await at.settle()
        asked = [at.cluster.loop.spawn("client", at.control(one, "a")) for one in turns]
        await at.settle()
        with pytest.raises(Unavailable):
            await at.control(Control.PAUSE, "a")
        store.holds = False
        store.go_on.set()
        found = await asyncio.gather(first, *asked)

        assert all(isinstance(one, ActiveProcedure) for one in found)
        at.let("a", "a again")
        ended = await at.end("a")
        actions = [one.action for one in ended.last.controls]
        assert actions == [one.value for one in turns]  # the first is forgotten: it is the 17th
        assert ended.outcome is ProcedureOutcome.SUCCEEDED

    office(scenario, client=stores)


def test_given_letters_that_wait_when_it_ends_then_they_hear_of_its_end() -> None:
    stores = Stores()

    async def scenario(at: Office) -> None:
        await at.submit("a")
        at.let("a")
        await at.settle()
        (store,) = stores.made
        store.holds = True
        at.let("a again")
        await at.settle()
        asked = [at.cluster.loop.spawn("client", at.control(one, "a")) for one in CONTROLS]
        await at.settle()
        store.go_on.set()
        told = await asyncio.gather(*asked, return_exceptions=True)

        assert all(isinstance(one, Conflict) for one in told)
        states = {one.facts["state"] for one in told if isinstance(one, MetaError)}
        assert states == {"it is succeeded"}

    office(scenario, client=stores)


# Rests ------------------------------------------------------------------------------------------


def test_given_an_undo_when_all_are_paused_for_long_then_it_is_tried_and_not_given_up() -> None:
    async def scenario(at: Office) -> None:
        gate = at.server.manager.gate
        await at.submit("a")
        await at.settle()
        gate.close("backup")
        await at.cancel("a")
        await at.cluster.clock.sleep_ms(2 * UNDO_MS)
        at.let("undo a")
        gate.open()

        assert (await at.end("a")).outcome is ProcedureOutcome.CANCELLED

    office(scenario)


def test_given_an_undo_when_nobody_leads_for_long_then_it_is_tried_and_not_given_up() -> None:
    async def scenario(at: Office) -> None:
        at.gates.trouble["undo a"] = AWAY
        await at.submit("a")
        await at.settle()
        await at.cancel("a")
        await at.cluster.clock.sleep_ms(UNDO_MS // 2)
        at.cluster.loop.kill(at.server.node)
        await at.cluster.clock.sleep_ms(2 * UNDO_MS)
        await at.cluster.started("meta-2")
        await at.settle()
        state = at.state("a")
        del at.gates.trouble["undo a"]
        at.let("undo a")

        assert state is State.CANCELLING
        assert (await at.end("a")).outcome is ProcedureOutcome.CANCELLED

    office(scenario)


TWO = Limits(running_max={AdmissionLane.DDL: 2, AdmissionLane.REPAIR: 1}, queue_max=16)


def test_given_steps_that_fail_past_their_point_when_they_rest_then_others_run() -> None:
    async def scenario(at: Office) -> None:
        at.let("a", "b", "good", "good again")
        at.gates.trouble |= {"a again": AWAY, "b again": AWAY}
        await at.at_once(("a",), ("b",))
        await at.settle()
        await at.submit("good")
        await at.cluster.clock.sleep_ms(5_000)

        found = await at.cluster.leader.manager.find(at.names["good"])
        assert isinstance(found, ProcedureHistory)
        assert at.states("a", "b") == [State.RETRYING, State.RETRYING]
        at.gates.trouble.clear()
        at.let("a again", "b again")
        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED
        assert (await at.end("b")).outcome is ProcedureOutcome.SUCCEEDED

    office(scenario, TWO)


def test_given_one_that_rested_when_places_are_taken_then_it_waits_for_one_and_can_be_paused() -> (
    None
):
    async def scenario(at: Office) -> None:
        at.let("a")
        at.gates.trouble["a again"] = AWAY
        await at.submit("a")
        await at.settle()
        await at.at_once(("x",), ("y",))
        await at.cluster.clock.sleep_ms(1_000)
        tried = len(at.gates.ran)
        await at.cluster.clock.sleep_ms(20_000)
        waited = at.gates.ran[tried:]
        state = at.state("a")
        await at.control(Control.PAUSE, "a")
        await at.control(Control.RESUME, "a")
        at.gates.trouble.clear()
        at.let("x", "x again", "a again")

        assert waited == []
        assert state is State.RETRYING
        assert (await at.end("a")).outcome is ProcedureOutcome.SUCCEEDED
        assert at.state("y") is State.RUNNING

    office(scenario, TWO)


def test_given_more_that_rested_than_there_are_places_when_those_are_free_then_all_go_on() -> None:
    """A procedure that waits for a place has none: it must not count as one of those that run."""
    many = ("a", "b", "c", "d")

    async def scenario(at: Office) -> None:
        at.let(*many)
        at.gates.trouble |= {f"{name} again": AWAY for name in many}
        await at.at_once(*((name,) for name in many))
        await at.settle()
        await at.at_once(("x",), ("y",))
        await at.cluster.clock.sleep_ms(20_000)
        tried = len(at.gates.ran)
        await at.cluster.clock.sleep_ms(20_000)
        waited = at.gates.ran[tried:]
        at.gates.trouble.clear()
        at.let(*(f"{name} again" for name in many), "x", "x again", "y", "y again")

        assert waited == []
        for name in (*many, "x", "y"):
            assert (await at.end(name)).outcome is ProcedureOutcome.SUCCEEDED

    office(scenario, TWO)


@pytest.mark.parametrize("ahead_ms", [-3_600_000, 0, 3_600_000])
def test_given_a_throttle_when_the_last_run_is_by_another_clock_then_it_rests_no_longer(
    ahead_ms: int,
) -> None:
    """A beat is written by the wall clock of whoever led then."""

    async def scenario(at: Office) -> None:
        at.gates.twice.add("a")
        await at.submit("a")
        await at.control(Control.THROTTLE, "a", percent=50)
        await at.cluster.clock.sleep_ms(10_000)
        at.let("a")  # a run of ten seconds: it rests as long
        await at.settle()
        at.cluster.clock._wall_start_ms -= ahead_ms
        await at.next_leader()
        before = len(at.gates.ran)
        await at.cluster.clock.sleep_ms(10_500)

        assert at.gates.ran[before:] != []

    office(scenario)
