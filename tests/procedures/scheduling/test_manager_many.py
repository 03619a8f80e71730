"""Thousands of unfinished procedures, and the leader that finds them."""

from collections.abc import Sequence

import pytest

from keys.commit.txn import Stamp
from keys.model.records import ProcedureKey
from keys.store.kv import Put, Request
from keys.value import encode
from procedures.engine import record_transitions
from procedures.engine.active_procedure import ActiveProcedure
from procedures.locking.holding import LockTable
from procedures.machine import AdmissionLane
from procedures.scheduling import recovery
from procedures.scheduling.active_procedures import LOOKS_AT_ONCE
from procedures.scheduling.admission import Limits
from tests.procedures.harness.gates import Gate
from tests.procedures.harness.leader_office import OPERATOR, Office, office

MANY = 1_000
PLACES = Limits(running_max={AdmissionLane.DDL: 64, AdmissionLane.REPAIR: 8}, queue_max=MANY)


@pytest.mark.slow
def test_given_1000_queued_when_the_leader_dies_then_few_reads_find_all_and_all_end() -> None:
    async def scenario(at: Office) -> None:
        names = [f"p{number}" for number in range(MANY)]
        await at.at_once(*((name, f"table:{number // 4}") for number, name in enumerate(names)))
        before = [procedure for procedure, _ in at.cluster.leader.manager.living()]
        sent: list[Request] = []

        def count(request: Request) -> Request:
            sent.append(request)
            return request

        at.cluster.alter = count

        manager = (await at.next_leader()).manager

        assert [procedure for procedure, _ in manager.living()] == before
        assert len(before) == MANY
        assert len(sent) <= 8  # not one for each procedure
        for name in names:
            at.let(name, f"{name} again")
        for name in names:
            await at.end(name)

    office(scenario, PLACES)


QUEUE = 10_000
WIDE = Limits(running_max={AdmissionLane.DDL: 64, AdmissionLane.REPAIR: 8}, queue_max=QUEUE)


async def store(at: Office, locks: Sequence[tuple[str, ...]]) -> None:
    """As earlier leaders have left them: queued, in this order."""
    gate, client = at.cluster.kinds["gate"], OPERATOR.model_copy(update={"idempotency": None})
    now_ms, puts = at.cluster.clock.wall_ms(), list[Put]()
    for number, its in enumerate(locks):
        name, procedure = f"p{number}", at.cluster.ids.procedure_id()
        at.let(name, f"{name} again")
        state = Gate(name=name, locks=its)
        record = record_transitions.begin(gate, state, client, Stamp(None, 1_000 + number, now_ms))
        record = record.model_copy(update={"deadline_at_ms": now_ms + 86_400_000})
        puts.append(Put(bytes(ProcedureKey(procedure)), encode(record)))
    for first in range(0, len(puts), 100):
        await at.cluster.kv.txn(Request(writes=tuple(puts[first : first + 100])), deadline_ms=1_000)


class Pieces:
    """Measures the largest piece of work between two yields, in records decoded and claims looked
    at."""

    def __init__(self, at: Office, patch: pytest.MonkeyPatch) -> None:
        self.largest, self._now, self._step = 0, 0, 0
        self._at = at
        entries_of, look = recovery.entries_of, LockTable._look

        def decoded(items: Sequence[object], kinds: object) -> list[ActiveProcedure]:
            self._did(len(items))
            return entries_of(items, kinds)  # type: ignore[arg-type]

        def looked(table: LockTable, concerned: Sequence[str]) -> frozenset[str]:
            before = table.looks
            found = look(table, concerned)
            self._did(table.looks - before)
            return found

        patch.setattr("procedures.scheduling.intake.entries_of", decoded)
        patch.setattr(LockTable, "_look", looked)

    def _did(self, much: int) -> None:
        if self._at.cluster.loop.steps != self._step:
            self._step, self._now = self._at.cluster.loop.steps, 0
        self._now += much
        self.largest = max(self.largest, self._now)


@pytest.mark.slow
@pytest.mark.parametrize("on_one_table", [False, True], ids=["queued", "waiting for one table"])
def test_given_10000_records_when_a_term_begins_then_all_end_in_pieces_that_are_small(
    monkeypatch: pytest.MonkeyPatch, on_one_table: bool
) -> None:
    """A piece that looks at all of them would cost the leader its seat."""

    async def scenario(at: Office) -> None:
        at.cluster.loop.kill(at.server.node)
        locks = [("table:1",) if on_one_table else (f"table:{n}",) for n in range(QUEUE)]
        await store(at, locks)
        pieces = Pieces(at, monkeypatch)
        server = await at.cluster.started("meta-2")
        living = server.manager.living()
        tasks = sum(entry.task is not None for _, entry in living)
        while at.cluster.leader.manager.living():
            await at.cluster.clock.sleep_ms(10)

        assert len(living) == QUEUE
        assert tasks <= (1 if on_one_table else WIDE.running_max[AdmissionLane.DDL])
        assert at.cluster.living() == []
        assert at.gates.ran.count("p0") == at.gates.ran.count(f"p{QUEUE - 1}") == 1
        assert pieces.largest <= 2 * LOOKS_AT_ONCE
        assert server.manager.locks.looks <= 4 * QUEUE

    office(scenario, WIDE)
