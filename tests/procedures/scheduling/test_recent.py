"""Histories in memory are bounded in number and in bytes."""

from keys.model.records import (
    ClientRequirements,
    ProcedureHistory,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    Resource,
)
from procedures.scheduling.recent import Recent


def ended(statement_bytes: int = 0) -> ProcedureHistory:
    client = ClientRequirements(
        submitted_by="anna", request_id="r", statement={"body": "x" * statement_bytes}
    )
    last = ProcedureRecord(
        kind="create_table",
        kind_format=1,
        step="commit",
        phase=ProcedurePhase.FORWARD,
        state={},
        submission=1,
        locks=(),
        resource=Resource.table(1024, "main", "public", "t"),
        client=client,
        submitted_at_ms=1,
        deadline_at_ms=2,
    )
    return ProcedureHistory(
        outcome=ProcedureOutcome.SUCCEEDED,
        last=last,
        result={},
        finished_at_ms=2,
        catalog_version=1,
    )


def test_given_more_than_its_number_when_one_is_added_then_the_oldest_goes() -> None:
    recent = Recent(count_max=2)

    for name in ("a", "b", "c"):
        recent.add(name, ended())

    assert ["a" in recent, "b" in recent, "c" in recent] == [False, True, True]
    assert recent.size_bytes == 2 * len(ended().model_dump_json())


def test_given_wide_histories_when_they_pass_the_bytes_then_as_many_go_as_must() -> None:
    wide = ended(10_000)
    size = len(wide.model_dump_json())
    recent = Recent(bytes_max=3 * size)

    for number in range(100):
        recent.add(str(number), wide)

    assert len(recent) == 3
    assert recent.size_bytes == 3 * size
    assert recent["99"] == wide


def test_given_one_larger_than_all_bytes_when_added_then_it_alone_is_kept() -> None:
    recent = Recent(bytes_max=5_000)
    recent.add("small", ended())

    recent.add("wide", ended(10_000))

    assert "wide" in recent
    assert len(recent) == 1


def test_given_the_same_procedure_when_added_again_then_it_counts_once() -> None:
    recent = Recent()

    recent.add("a", ended(100))
    recent.add("a", ended())

    assert recent.size_bytes == len(ended().model_dump_json())
