"""Rules about procedures: none is lost or duplicated, locks follow from the records, and the parts
that they write belong to somebody.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from keys.commit.staged_parts import StagedParts
from keys.model.cluster import LeaderKey
from keys.model.log import CatalogUpdate, CatalogUpdateKey, StagedRef
from keys.model.records import IdempotencyKey, ProcedureHistoryKey, ProcedureKey, ProcedureRecord
from keys.model.staging.parts import BatchPartKey, LargeUpdateKey
from keys.store.kv import KeyValue
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule, Severity
from metasrv.check.stored.stored_log import parts_by_batch
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import Corrupt
from procedures.kinds.registry import KINDS
from procedures.locking.holding import claim_of, holders

COLLECTED_MS = 3_600_000
"""Time in which a leader deletes parts that nothing names. Its chore runs once a minute and looks
at 1,000 parts (metasrv/leadership/log/unnamed_parts.py): 60,000 of them are looked at by then."""


def _unknown(record: ProcedureRecord) -> str | None:
    kind = KINDS.get(record.kind)
    if kind is None:
        return f"kind {record.kind} is not known here"
    if record.kind_format > kind.state.format:
        return f"format {record.kind_format} of {record.kind} is newer than this program"
    return None


def parked(facts: CheckInput) -> Iterator[CheckFault]:
    """A parked procedure keeps its locks until a server that knows its kind leads (G12)."""
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


def parts_there(facts: CheckInput) -> Iterator[CheckFault]:
    """A procedure that lacks one of its parts can neither run nor undo what it did."""
    staged = {name: ref for name, record in facts.records().items() if (ref := _staged(record))}
    parts = parts_by_batch(item.raw for item in facts.items) if staged else {}
    for procedure, ref in staged.items():
        try:
            at_once(at_once(StagedParts.of(ref, parts.get(ref.batch, ()))).decoded())
        except Corrupt as error:
            key = str(ProcedureKey(procedure))
            yield CheckFault(key, str(error), "all parts that its state names")


def _staged(record: ProcedureRecord) -> StagedRef | None:
    """The parts that a record names, if this program can read it."""
    kind = KINDS.get(record.kind)
    if kind is None or kind.staging is None:
        return None
    try:
        return kind.staging.parts(kind.state.model_validate(record.state))
    except ValidationError:
        return None  # another rule says so


def unnamed(facts: CheckInput) -> Iterator[CheckFault]:
    """The leader deletes unnamed parts from time to time: those of a submission that failed, or of
    a batch that has ended. They are reported if the present leader has committed updates for an
    hour since no key named them. Before that, its deletion may not have come to them; without a
    leader nothing is deleted, so only the time of commits in one term counts.
    """
    named = {large.staged.batch for large in facts.of(LargeUpdateKey).values()}
    named |= {update.staged.batch for update in facts.log().values() if update.staged is not None}
    collected = _collected(facts)
    for batch, parts in parts_by_batch(item.raw for item in facts.items).items():
        if batch in named or _last_named(facts, batch, parts) >= collected:
            continue
        first = BatchPartKey.parse(parts[0].key)
        state = f"nothing names the parts of {batch} ({len(parts)} of them)"
        yield CheckFault(str(first), state, "deleted within an hour by the leader")


def _collected(facts: CheckInput) -> int:
    """The revision before which the leader has looked at every part; 0: not known."""
    leader, head = facts.by_name.get(str(LeaderKey())), facts.version()
    if leader is None or head is None:
        return 0
    return max(
        (
            item.raw.create_revision
            for item in facts.items
            if isinstance(item.key, CatalogUpdateKey)
            and item.raw.create_revision > leader.raw.mod_revision
            and isinstance(update := item.value, CatalogUpdate)
            and head.at_ms - update.at_ms >= COLLECTED_MS
        ),
        default=0,
    )


def _last_named(facts: CheckInput, batch: str, parts: Sequence[KeyValue]) -> int:
    """The revision up to which the parts may have belonged to a procedure that was not over."""
    procedure = batch.partition(".")[0]
    try:
        record, history = str(ProcedureKey(procedure)), str(ProcedureHistoryKey(procedure))
    except ValueError:  # no procedure has such an id
        return max(part.mod_revision for part in parts)
    if record in facts.by_name:
        return facts.revision
    over = facts.by_name.get(history)
    return max(*(part.mod_revision for part in parts), 0 if over is None else over.raw.mod_revision)


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
    CheckRule(
        "procedure-parts", 1, "a record whose commands are in parts has all of them", parts_there
    ),
    CheckRule(
        "parts-named",
        1,
        "parts that no procedure, record or log entry names are deleted",
        unnamed,
        severity=Severity.WARNING,
    ),
)
