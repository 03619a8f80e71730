"""Answers to a client that waited for the end of its procedure."""

import pytest

from keys.model.records import (
    ClientRequirements,
    ProcedureHistory,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    Resource,
    StoredError,
)
from metasrv.service.requests.ended import error_of
from metasrv_base.errors import Conflict, Corrupt, MetaError, NotFound, Unavailable


def ended(outcome: ProcedureOutcome, code: str | None) -> ProcedureHistory:
    record = ProcedureRecord(
        kind="create_table",
        kind_format=1,
        step="create",
        phase=ProcedurePhase.UNDO,
        state={},
        submission=1,
        locks=(),
        resource=Resource(type="table", id="1", name="t"),
        client=ClientRequirements(submitted_by="a", request_id="r", statement={}),
        submitted_at_ms=0,
        deadline_at_ms=1,
        error=None if code is None else StoredError(code=code, facts={"name": "t"}),
    )
    return ProcedureHistory(
        outcome=outcome, last=record, result=None, finished_at_ms=2, catalog_version=None
    )


@pytest.mark.parametrize(
    ("outcome", "code", "error", "told"),
    [
        (ProcedureOutcome.ROLLED_BACK, "already-exists", Conflict, "already-exists"),
        (ProcedureOutcome.FAILED, "table-not-found", NotFound, "table-not-found"),
        (ProcedureOutcome.ROLLED_BACK, "outcome-unknown", Unavailable, "not-ready"),
        (ProcedureOutcome.ROLLED_BACK, "region-lost", Unavailable, "region-lost"),
        (ProcedureOutcome.CANCELLED, None, Conflict, "action-not-allowed"),
        (ProcedureOutcome.FAILED, "never-heard-of", Corrupt, "internal"),
    ],
)
def test_given_an_end_without_success_then_its_error_is_raised_again(
    outcome: ProcedureOutcome, code: str | None, error: type[MetaError], told: str
) -> None:
    found = error_of("p-1", ended(outcome, code))

    assert type(found) is error
    assert found.code == told
    assert found.facts["procedure_id"] == "p-1"


def test_given_a_success_then_there_is_no_error() -> None:
    assert error_of("p-1", ended(ProcedureOutcome.SUCCEEDED, None)) is None
