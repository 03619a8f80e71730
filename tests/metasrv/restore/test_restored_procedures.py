"""Backups that were made in the middle of every kind of procedure, at every step of it."""

import asyncio
from collections.abc import Iterator

import pytest
import structlog

from keys.model.records import ProcedureKey, ProcedurePhase, ProcedureRecord
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv.check.check_input import CheckInput, read_facts
from metasrv.check.rule import Scope, violations_of
from metasrv.check.rules import RULES
from metasrv.restore.restore import restore
from metasrv.restore.restored_procedures import ENDED_KINDS, restored_procedure
from metasrv_base.clock import Clock
from procedures.kinds.registry import KINDS
from tests.crash.enumeration import Harness, life
from tests.fakes.cluster import CLUSTER_ID
from tests.metasrv.restore.backups import Backup, Target, pieces
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS

STORE_RULES = tuple(rule for rule in RULES if rule.scope is Scope.STORE)
LIVES = {scenario.kind: scenario for scenario in reversed(SCENARIOS)}
"""One scenario of each kind."""
EXPECTED = {"node-adopted"}


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


def moments(scenario: Scenario) -> Iterator[CheckInput]:
    """The store at the first revision of each step of each procedure, forward and in undo."""
    stores: list[MemoryKv] = []

    def make_store(clock: Clock) -> MemoryKv:
        stores.append(MemoryKv(clock))
        return stores[-1]

    assert life(scenario, None, Harness(make_store=make_store)).wrong == ()
    (kv,) = stores
    seen: set[object] = set()
    for revision in range(1, kv.revision + 1):
        records = read_facts(kv._store.scan(*ProcedureKey.under(), revision), revision).records()
        now = {(id, where(record)) for id, record in records.items()}
        if now - seen:
            seen |= now
            yield read_facts(kv._store.scan(b"", b"\0", revision), revision)


def where(record: ProcedureRecord) -> object:
    return record.kind, record.phase, record.step, len(record.trail)


def faults(facts: CheckInput) -> set[tuple[str, str]]:
    return {(one.rule, one.subject) for one in violations_of(STORE_RULES, facts)}


def test_given_the_kinds_then_each_has_a_life() -> None:
    assert LIVES.keys() == KINDS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(LIVES))
def test_given_a_backup_in_the_middle_of_a_procedure_when_restored_then_the_check_is_clean(
    kind: str,
) -> None:
    some = False
    for facts in moments(LIVES[kind]):
        some, target = True, Target()

        made = asyncio.run(restore(target.deps, pieces(Backup(facts).file(of=CLUSTER_ID))))

        after = target.facts()
        new = {rule for rule, _ in faults(after) - faults(facts)} - EXPECTED
        assert new == set(), [where(record) for record in facts.records().values()]
        records = after.records().values()
        assert not {record.kind for record in records} & ENDED_KINDS
        assert all(record.paused_at_ms is not None or record.poisoned for record in records)
        assert made.parked + made.ended == len(facts.records())
    assert some


def restored_records(scenario: Scenario) -> Iterator[tuple[ProcedureRecord, ProcedureRecord]]:
    """Records of its procedures, each as it was in a backup and as it is restored."""
    for facts in moments(scenario):
        target = Target()
        asyncio.run(restore(target.deps, pieces(Backup(facts).file(of=CLUSTER_ID))))
        after = target.facts().records()
        yield from (
            (record, after[id])
            for id, record in facts.records().items()
            if record.kind == scenario.kind and id in after
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create_index", "validate_index"])
def test_given_an_index_that_is_filled_when_restored_then_it_is_undone_unless_it_is_public(
    kind: str,
) -> None:
    steps = set[str]()
    for before, after in restored_records(LIVES[kind]):
        steps.add(before.step)
        is_forward = before.step == "finish" and before.phase is ProcedurePhase.FORWARD
        assert after.poisoned is not is_forward, where(before)
        assert (after.phase is ProcedurePhase.FORWARD) is is_forward, where(before)
        assert after.step == before.step
    assert steps >= {"mark", "fill", "commit", "finish"}


def test_given_rows_that_are_looked_at_when_restored_then_all_are_looked_at_again() -> None:
    (scenario,) = [one for one in SCENARIOS if one.name == "alter_table, constraints"]
    records = (record for facts in moments(scenario) for record in facts.records().values())
    record = next(record for record in records if record.step == "validate")
    looked_at = record.model_copy(update={"state": {**record.state, "valid": [[0, 1]]}})

    restored = restored_procedure(ProcedureKey(CLUSTER_ID), looked_at, now_ms=1)

    (put,) = restored.puts
    assert decode(ProcedureRecord, put.value, key="p").state["valid"] is None
