"""Procedures that were under way when a backup was made: parked, or ended. Pure.

The cluster that was backed up may have finished them since, so none goes on by itself. One that
moves only the catalog is parked: an operator resumes or cancels it, and its locks stand meanwhile.
One that moves regions or rows is ended: its plan names folders, epochs and files that may be
another's by now, and adoption finds out where each region is.
"""

from collections.abc import Iterator
from typing import NamedTuple

from keys.model.poison import Poison, PoisonKey
from keys.model.records import (
    CONTROLS_MAX,
    Controlled,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    StoredError,
)
from keys.store.kv import Put
from keys.value import encode

BY = "metasrv backup restore"
ENDED_KINDS = frozenset(
    {
        "add_copy",
        "check_table",
        "decommission_node",
        "drain_node",
        "failover_node",
        "change_copies",
        "failover_table",
        "import_table",
        "lose_regions",
        "move_copy",
        "move_dropped",
        "purge_table",
        "remove_copy",
        "remove_orphans",
        "switch_leader",
        "truncate_table",
    }
)
"""Kinds whose plan is of regions, files or rows."""
PARKED_KINDS = frozenset(
    {
        "alter_catalog",
        "alter_placement",
        "alter_table",
        "alter_tablespace",
        "batch",
        "create_catalog",
        "create_index",
        "create_placement",
        "create_schema",
        "create_table",
        "create_tablespace",
        "drop_catalog",
        "drop_index",
        "drop_placement",
        "drop_schema",
        "drop_table",
        "drop_tablespace",
        "rename_placement",
        "rename_table",
        "rename_tablespace",
        "undrop_table",
        "validate_index",
    }
)


FILLING_KINDS = frozenset({"create_index", "validate_index"})
"""Kinds that fill an index: undone, unless it is public. The regions may have forgotten the index
since, as it was dropped or not made after all, and then would not take what is made for it."""
FILLED = "finish"
"""The step of those kinds at which the index is public."""
LOOKS = "validate"
"""The step at which `alter_table` looks at rows as of its marks, which may be gone since: it looks
at all of them again."""


class RestoredProcedure(NamedTuple):
    """The keys that take the place of a record, and what became of it."""

    puts: tuple[Put, ...]
    is_parked: bool


def restored_procedure(
    key: ProcedureKey, record: ProcedureRecord, now_ms: int
) -> RestoredProcedure:
    """A kind that this program does not know stays as it is: no server that knows it no better runs
    it, and it keeps its locks."""
    if record.kind in ENDED_KINDS or _never_began(record):
        history = _ended(record, now_ms)
        put = Put(bytes(ProcedureHistoryKey(key.procedure)), encode(history))
        return RestoredProcedure((put,), is_parked=False)
    if record.kind not in PARKED_KINDS:
        return RestoredProcedure((Put(bytes(key), encode(record)),), is_parked=True)
    return RestoredProcedure(tuple(_parked(key, record, now_ms)), is_parked=True)


def _never_began(record: ProcedureRecord) -> bool:
    """Whether it had surely done nothing, and nobody waits for it."""
    began = record.started_at_ms or record.resumed or record.timeline or record.trail
    return not began and record.parent is None


def _parked(key: ProcedureKey, record: ProcedureRecord, now_ms: int) -> Iterator[Put]:
    """One that is undone bears a poison: `retry` goes on with the undo."""
    record = _turned_back(record, now_ms)
    if record.kind == "alter_table" and record.step == LOOKS:
        record = record.model_copy(update={"state": {**record.state, "valid": None}})
    if record.phase is ProcedurePhase.FORWARD:
        mark = _mark("pause", now_ms)
        # One that was paused already has stood since then.
        since_ms = record.paused_at_ms if record.paused_at_ms is not None else now_ms
        update = {"paused_at_ms": since_ms, "controls": _controls(record, mark)}
        yield Put(bytes(key), encode(record.model_copy(update=update)))
        return
    yield Put(bytes(key), encode(record.model_copy(update={"poisoned": True})))
    if not record.poisoned:
        poison = Poison(
            procedure=key.procedure,
            kind=record.kind,
            resource=record.resource,
            step=record.step,
            error=record.error or StoredError(code="not-ready", facts={"what": "the cluster"}),
            at_ms=now_ms,
        )
        yield Put(bytes(PoisonKey.of(record.resource)), encode(poison))


def _turned_back(record: ProcedureRecord, now_ms: int) -> ProcedureRecord:
    """*record*, undone from the step in flight if it fills an index."""
    is_forward = record.phase is ProcedurePhase.FORWARD
    if not is_forward or record.kind not in FILLING_KINDS or record.step == FILLED:
        return record
    update = {
        "phase": ProcedurePhase.UNDO,
        "turned_at_ms": now_ms,
        "paused_at_ms": None,
        "cancel": True,
        "controls": _controls(record, _mark("cancel", now_ms)),
    }
    return record.model_copy(update=update)


def _ended(record: ProcedureRecord, now_ms: int) -> ProcedureHistory:
    mark = _mark("cancel", now_ms)
    update = {"cancel": True, "paused_at_ms": None, "controls": _controls(record, mark)}
    return ProcedureHistory(
        outcome=ProcedureOutcome.CANCELLED,
        last=record.model_copy(update=update),
        result=None,
        finished_at_ms=now_ms,
        catalog_version=record.catalog_version,
    )


def _mark(action: str, now_ms: int) -> Controlled:
    reason = "the cluster was restored from a backup that was made while this went on"
    return Controlled(action=action, by=BY, at_ms=now_ms, reason=reason)


def _controls(record: ProcedureRecord, mark: Controlled) -> tuple[Controlled, ...]:
    return (*record.controls, mark)[-CONTROLS_MAX:]
