"""Rules about procedures: none is lost or duplicated, locks follow from the records."""

from collections import Counter
from collections.abc import Iterator

from pydantic import ValidationError

from keys.model.records import IdempotencyKey, ProcedureHistoryKey, ProcedureKey, ProcedureRecord
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule, Severity
from procedures.kinds.registry import KINDS
from procedures.locking.holding import claim_of, holders


def _unknown(record: ProcedureRecord) -> str | None:
    kind = KINDS.get(record.kind)
    if kind is None:
        return f"kind {record.kind} is not known here"
    if record.kind_format > kind.state.format:
        return f"format {record.kind_format} of {record.kind} is newer than this program"
    return None


def parked(facts: CheckInput) -> Iterator[CheckFault]:
    """It keeps its locks until a server that knows its kind leads (G12)."""
    for procedure, record in facts.records().items():
        why = _unknown(record)
        if why is not None:
            yield CheckFault(str(ProcedureKey(procedure)), why, "a server that can run it")


def runnable(facts: CheckInput) -> Iterator[CheckFault]:
    for procedure, record in facts.records().items():
        key = str(ProcedureKey(procedure))
        if _unknown(record) is not None:
            continue
        kind = KINDS[record.kind]
        steps = {*record.trail, record.step} - kind.steps.keys()
        if steps:
            yield CheckFault(key, f"steps {sorted(steps)}", f"steps of {record.kind}")
        try:
            kind.state.model_validate(record.state)
        except ValidationError as error:
            state = f"a state with {error.error_count()} errors"
            yield CheckFault(key, state, f"the state of a {record.kind}")


def locks(facts: CheckInput) -> Iterator[CheckFault]:
    """A procedure that has committed a step held its locks then, and keeps them to its end."""
    records = facts.records()
    claims = [claim_of(name, record) for name, record in records.items()]
    for procedure, blocks in holders(claims).items():
        record = records[procedure]
        if blocks and (record.trail or record.timeline):
            state = f"it has run, and {blocks[0].by} holds {blocks[0].key} before it"
            yield CheckFault(
                str(ProcedureKey(procedure)), state, "waiting until that procedure has ended"
            )


def submissions(facts: CheckInput) -> Iterator[CheckFault]:
    """Submission numbers decide which procedure holds a lock; two procedures with one number have
    no order."""
    records = facts.records()
    numbers = Counter(record.submission for record in records.values())
    for procedure, record in records.items():
        if numbers[record.submission] > 1:
            state = f"submission {record.submission}, as another procedure has"
            yield CheckFault(str(ProcedureKey(procedure)), state, "a number of its own")


def parents(facts: CheckInput) -> Iterator[CheckFault]:
    for procedure, record in facts.records().items():
        parent = record.parent
        if parent is not None and not _is_known(facts, parent):
            yield CheckFault(str(ProcedureKey(procedure)), f"parent {parent}", "one that exists")


def _is_known(facts: CheckInput, procedure: str) -> bool:
    try:
        return facts.has(ProcedureKey(procedure)) or facts.has(ProcedureHistoryKey(procedure))
    except ValueError:  # no procedure has such an id
        return False


def ended_once(facts: CheckInput) -> Iterator[CheckFault]:
    """One transaction replaces a record by its history."""
    for procedure in facts.records():
        if facts.has(ProcedureHistoryKey(procedure)):
            state = "it has a history too, so it has ended"
            yield CheckFault(str(ProcedureKey(procedure)), state, "no such key")


def idempotency(facts: CheckInput) -> Iterator[CheckFault]:
    """A client must find by its key the procedure that it started (G11)."""
    for key, value in facts.of(IdempotencyKey).items():
        if not _is_known(facts, value.procedure):
            state = f"procedure {value.procedure}, of which there is neither record nor history"
            yield CheckFault(str(key), state, "a procedure that exists")


RULES = (
    CheckRule(
        "procedure-parked",
        1,
        "every procedure is of a kind and format that this program knows",
        parked,
        severity=Severity.WARNING,
    ),
    CheckRule("procedure-runnable", 1, "every record has steps and a state of its kind", runnable),
    CheckRule("procedure-submission", 4, "submission numbers are unique", submissions),
    CheckRule("procedure-locks", 4, "no procedure has run without its locks", locks),
    CheckRule("procedure-parent", 1, "the parent of a procedure exists", parents),
    CheckRule("procedure-once", 1, "no procedure has both a record and a history", ended_once),
    CheckRule(
        "idempotency-target",
        4,
        "every idempotency key refers to a procedure that exists",
        idempotency,
    ),
)
