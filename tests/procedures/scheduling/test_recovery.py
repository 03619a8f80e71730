"""Recovery by a new leader: the procedures, those it cannot run, and the holders of locks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from keys.commit.txn import Stamp, Txn
from keys.model.records import ProcedureHistory, ProcedureKey, ProcedureOutcome
from keys.store.kv import Delete, Get, KeyPage, Kv, Put, Request
from metasrv_base.errors import Conflict
from procedures.engine import record_transitions
from procedures.engine.control import Command, Control, State
from procedures.scheduling.manager import AUDIT_MS, LOOK_MS
from tests.crash.planted import Client
from tests.procedures.harness.gates import Gate
from tests.procedures.harness.leader_office import OPERATOR, Office, office


def test_given_one_lock_then_the_second_waits_and_shows_for_whom() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.submit("b", "table:1")
        await at.settle()
        entry = dict(at.cluster.leader.manager.living())[at.names["b"]]

        assert (at.state("a"), at.state("b")) == ("running", "waiting")
        assert [(one.key, one.by) for one in entry.blocked] == [("table:1", at.names["a"])]
        at.let("a", "a again", "b", "b again")
        await at.end("b")
        assert at.gates.ran == ["a", "a again", "b", "b again"]

    office(scenario)


def test_given_a_new_leader_then_each_goes_on_at_its_own_step_under_the_same_locks() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.submit("b", "table:1")
        at.let("a")
        await at.settle()

        await at.next_leader()
        await at.settle()

        assert (at.state("a"), at.state("b")) == ("running", "waiting")
        assert at.gates.ran == ["a", "a again", "a again"]

    office(scenario)


def record_of(at: Office, kind: str, **changes: object) -> dict[str, object]:
    stamp = Stamp(catalog_version=None, submission=2, at_ms=1)
    gate = at.cluster.kinds["gate"]
    state = Gate(name="x", locks=("table:1",))
    record = record_transitions.begin(
        gate, state, OPERATOR.model_copy(update={"idempotency": None}), stamp
    )
    return {**record.model_dump(mode="json"), "kind": kind, **changes}


DAMAGED = (
    b'{"format":1,"kind":"gate","submission":2,"locks":[{"key":"table:1","mode":"exclusive"},{"ke',
    b'{"locks":[{"key":"table:1","mode":"shared"}],"format":"one"}',
    b'garbage {"key": "table:1" garbage',
)


@pytest.mark.parametrize("raw", DAMAGED)
def test_given_a_damaged_record_then_it_is_parked_and_the_locks_in_its_text_are_held(
    raw: bytes,
) -> None:
    async def scenario(at: Office) -> None:
        at.cluster.loop.kill(at.server.node)
        procedure = at.cluster.ids.procedure_id()
        writes = (Put(bytes(ProcedureKey(procedure)), raw), Put(b"__procedure/no-id", b"{}"))
        await at.cluster.kv.txn(Request(writes=writes), deadline_ms=1_000)

        await at.cluster.started("meta-2")
        await at.submit("blocked", "table:1")
        await at.submit("free", "table:2")
        await at.settle()

        living = dict(at.cluster.leader.manager.living())
        assert living[procedure].state is State.PARKED
        assert "table:1" in str(living[procedure].parked)
        assert at.states("blocked", "free") == ["waiting", "running"]
        command = Command(Control.CANCEL, by="ops")
        with pytest.raises(Conflict, match="action-not-allowed"):
            await at.cluster.leader.manager.control(procedure, command)
        assert at.cluster.stored()[bytes(ProcedureKey(procedure))] == raw

    office(scenario)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "from_the_future"},
        {"format": 2, "a_new_field": [1]},
        {"kind_format": 9},
        {"step": "a_new_step"},
    ],
)
def test_given_a_record_of_a_newer_server_then_it_is_parked_keeps_its_locks_and_others_run(
    changes: dict[str, object],
) -> None:
    async def scenario(at: Office) -> None:
        at.cluster.loop.kill(at.server.node)
        procedure = at.cluster.ids.procedure_id()
        raw = json.dumps({**record_of(at, "gate"), **changes}).encode()
        await at.cluster.kv.txn(
            Request(writes=(Put(bytes(ProcedureKey(procedure)), raw),)), deadline_ms=1_000
        )

        await at.cluster.started("meta-2")
        await at.submit("blocked", "table:1")
        await at.submit("free", "table:2")
        at.let("free", "free again")
        await at.end("free")
        at.names["x"] = procedure

        assert at.state("x") is State.PARKED
        assert at.state("blocked") is State.WAITING
        assert at.cluster.stored()[bytes(ProcedureKey(procedure))] == raw
        with pytest.raises(Conflict):
            await at.cancel("x")

    office(scenario)


async def store_beside(at: Office, name: str) -> str:
    """A record that the leader's manager has never heard of."""
    procedure = at.cluster.ids.procedure_id()
    key, gate = ProcedureKey(procedure), at.cluster.kinds["gate"]
    client = OPERATOR.model_copy(update={"idempotency": None})
    txn = Txn().expecting(key, 0)
    txn = txn.put_stamped(
        key, lambda stamp: record_transitions.begin(gate, Gate(name=name), client, stamp)
    )
    assert at.server.committer is not None
    await at.server.committer.commit(txn)
    return procedure


def differ(at: Office) -> list[Mapping[str, object]]:
    return [one for one in at.logs if one["event"] == "procedures_differ"]


def test_given_a_record_that_nobody_here_knows_when_counted_twice_then_it_is_taken_up() -> None:
    async def scenario(at: Office) -> None:
        procedure = await store_beside(at, "late")
        at.let("late", "late again")
        await at.cluster.clock.sleep_ms(AUDIT_MS + LOOK_MS)
        once = differ(at)
        await at.cluster.clock.sleep_ms(AUDIT_MS)

        found = await at.cluster.leader.manager.find(procedure)
        assert isinstance(found, ProcedureHistory)
        assert once == []
        assert [(one["unknown"], one["gone"]) for one in differ(at)] == [([procedure], [])]

    office(scenario)


def test_given_a_record_that_was_deleted_by_hand_when_counted_twice_then_it_is_told() -> None:
    async def scenario(at: Office) -> None:
        await at.submit("a", "table:1")
        await at.settle()
        await at.control(Control.PAUSE, "a")  # what runs may be ending while it is counted
        key = bytes(ProcedureKey(at.names["a"]))
        await at.cluster.kv.txn(Request(writes=(Delete(key),)), deadline_ms=1_000)
        await at.cluster.clock.sleep_ms(2 * AUDIT_MS + LOOK_MS)

        assert [(one["unknown"], one["gone"]) for one in differ(at)] == [([], [at.names["a"]])]
        with pytest.raises(Conflict) as refused:
            await at.control(Control.RESUME, "a")
        assert refused.value.code == "action-not-allowed"
        assert at.state("a") is State.PARKED  # it keeps its locks until somebody has looked

    office(scenario)


@pytest.mark.slow
def test_given_procedures_that_come_and_go_when_counted_then_nothing_differs() -> None:
    async def scenario(at: Office) -> None:
        for number in range(3 * AUDIT_MS // 500):
            name = f"p{number}"
            at.let(name, f"{name} again")
            await at.submit(name, f"table:{number % 3}")
            await at.cluster.clock.sleep_ms(500)

        assert differ(at) == []

    office(scenario)


@dataclass
class Counted(Client):
    """Counts what is read of the records."""

    ranges: list[Get] = field(default_factory=list)

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        if get.key.startswith(b"__procedure/"):
            self.ranges.append(get)
        return await super().range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )


def test_given_many_paused_when_a_term_goes_on_then_their_records_are_read_once() -> None:
    """A look that decodes them all costs a leader its seat."""

    async def scenario(at: Office) -> None:
        made: list[Counted] = []

        def client(kv: Kv) -> Kv:
            made.append(Counted(kv))
            return made[-1]

        for number in range(8):
            await at.submit(f"p{number}")
            await at.settle()
            await at.control(Control.PAUSE, f"p{number}")
        at.cluster.client = client
        await at.next_leader()
        (counted,) = made
        at_first = len(counted.ranges)
        await at.cluster.clock.sleep_ms(10 * AUDIT_MS)

        later = counted.ranges[at_first:]
        assert 9 <= len(later) <= 10
        assert all(get.count_only for get in later)

    office(scenario)


def test_given_a_step_with_a_mistake_of_ours_then_it_is_parked_and_a_cancel_undoes_it() -> None:
    async def scenario(at: Office) -> None:
        at.gates.fails.add("a")
        await at.submit("a", "table:1")
        await at.submit("b")
        at.let("b", "b again", "undo a")
        await at.end("b")
        state = at.state("a")
        await at.cancel("a")

        assert state is State.PARKED
        assert (await at.end("a")).outcome is ProcedureOutcome.CANCELLED

    office(scenario)
