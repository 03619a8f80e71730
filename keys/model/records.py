"""Stored forms of a procedure: its record while it is active, its history, its idempotency key."""

import re
import struct
from collections.abc import Mapping
from functools import cached_property
from operator import not_
from typing import Any, ClassVar, NamedTuple, Self
from uuid import UUID

import orjson
from pydantic import Field

from keys.key import Key, Range
from keys.model.history_dictionary import DICTIONARY, TEMPLATES
from keys.model.transitions import TRANSITIONS_MAX, Transition
from keys.packed import (
    AT_MS_BITS,
    DEFLATED,
    JSON,
    ROW,
    TEMPLATED,
    Templates,
    inflated,
    packing_of,
)
from keys.templated import own_of
from keys.value import StoredModel, StoredPart
from metasrv_base.ids import UUID_TEXT
from metasrv_base.values.frozen import frozen
from metasrv_base.values.value_enum import ValueEnum

SHA256 = re.compile(r"[0-9a-f]{64}")
PACKED_KEY = struct.Struct(">B16s32sQ")  # packing, procedure, fingerprint, milliseconds
HISTORIES = Templates(TEMPLATES)


class LockMode(ValueEnum):
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


class Lock(StoredPart):
    """One key that a procedure holds from its grant to its end (docs/protocols.md P2)."""

    key: str
    """`catalog:main`, `schema:main.public`, `name:main.public.t`, `table:1024`, `route:1024`,
    `region:4398046511104`, in that order; the last two are the placement side."""
    mode: LockMode


class ProcedurePhase(ValueEnum):
    """The direction in which a procedure runs."""

    FORWARD = "forward"
    UNDO = "undo"


class ProcedureOutcome(ValueEnum):
    """The outcome of a procedure. Every outcome but `succeeded` leaves no effects."""

    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    ROLLED_BACK = "rolled_back"
    FAILED = "failed"


class StoredError(StoredPart):
    """An error as it was raised: enough to raise the same again after a crash."""

    code: str
    facts: dict[str, Any]


class TimelineEntry(StoredPart):
    """One finished step in a timeline."""

    step: str
    at_ms: int
    """End of the step, wall clock."""
    ms: int
    """Duration in ms."""


class Resource(StoredPart):
    """The object that a procedure works on, as shown to people."""

    type: str
    id: str
    name: str

    @classmethod
    def table(cls, table_id: int, *name: str) -> Self:
        """Returns the resource of a table; *name* is its parts, or the full name."""
        return cls(type="table", id=str(table_id), name=".".join(name))


class ClientRequirements(StoredPart):
    """The client's request as it was sent, with its conditions, which are compared again under
    the locks (docs/protocols.md P1)."""

    submitted_by: str
    request_id: str
    statement: dict[str, Any]
    """{method, path, body} as sent."""
    idempotency: str | None = None
    """sha256(principal, key): the digest of its IdempotencyKey."""
    if_version: int | None = None
    """If-Match: the version of the table or placement that the client saw."""
    table_id: int | None = None
    """The table its name resolved to."""
    expected_epoch: int | None = None
    if_exists: bool = Field(default=False, exclude_if=not_)
    """An object that is gone ends the procedure as a success that changes nothing."""


class Controlled(StoredPart):
    """A control that somebody applied to an active procedure: who, when and why."""

    action: str
    """`cancel`, `pause`, `resume`, `retry`, `throttle` or `clear`."""
    by: str
    at_ms: int
    reason: str | None = None


CONTROLS_MAX = 16  # the last ones kept in a record
TIMELINE_MAX = 64  # beats kept in a record, so that it stays far below a transaction's bytes


class ProcedureRecord(StoredModel):
    """A procedure that is not over. Every commit of a step compares and replaces it."""

    kind: str
    kind_format: int
    """Format of `state`. A procedure with a higher one than this server knows is parked and
    never changed."""
    step: str
    """The step that runs next, or again; in phase undo, the step being undone."""
    phase: ProcedurePhase
    state: dict[str, Any]
    """The kind's own model."""
    trail: tuple[str, ...] = ()
    """Steps committed before `step`, oldest first; undo walks them backwards."""
    submission: int
    """Order of the locks: given by the committer, rising."""
    locks: tuple[Lock, ...]
    overtakes: tuple[str, ...] = ()
    """Procedures submitted earlier that it goes before: those that waited for a schema lock when
    this one came, which wants placement locks alone (docs/protocols.md P2)."""
    resource: Resource
    client: ClientRequirements
    parent: str | None = None
    submitted_at_ms: int
    deadline_at_ms: int
    """Wall clock; what has not passed the point of no return by then is undone. It moves by as long
    as all procedures were paused since it was submitted (`due_ms`)."""
    stood_ms: int = 0
    """The total time, in ms, that all procedures had been paused in the life of the cluster when
    this one was submitted."""
    started_at_ms: int | None = None
    resumed: int = 0
    """Number of leaders that have resumed it."""
    cancel: bool = False
    """The client asked; the undo then ends as `cancelled`."""
    timeline: tuple[TimelineEntry, ...] = Field(default=(), max_length=TIMELINE_MAX)
    error: StoredError | None = None
    """Reason for which it is being undone."""
    catalog_version: int | None = None
    """The last version it made."""
    paused_at_ms: int | None = None
    """Wall clock; None: it is not paused. Its deadline moves by as long as it was."""
    throttle_percent: int = 0
    """The share of time that its paced steps rest."""
    throttle_rows_per_s: int | None = None
    """Limit of a reorg's read rate, in rows/s; None: as fast as concurrent statements allow."""
    turned_at_ms: int | None = None
    """Time at which its undo began, or was last restarted; the budget of the undo counts from
    it."""
    poisoned: bool = False
    """Its undo was given up: its resource bears a poison that names it."""
    controls: tuple[Controlled, ...] = Field(default=(), max_length=CONTROLS_MAX)
    transitions: tuple[Transition, ...] = Field(default=(), max_length=TRANSITIONS_MAX)
    """Schema transitions that it published, oldest first, and how holders followed each."""

    @property
    def due_ms(self) -> int:
        """Its deadline, by a clock that stands still while all procedures are paused."""
        return self.deadline_at_ms - self.stood_ms


@frozen
class ProcedureKey(Key[ProcedureRecord]):
    template: ClassVar[str] = "__procedure/{procedure}"
    value_type: ClassVar[type[StoredModel]] = ProcedureRecord

    procedure: str


class StoredForm(NamedTuple):
    packed: bytes
    json_bytes: int
    """The length of its JSON."""


class ProcedureHistory(StoredModel):
    """A procedure that is over."""

    outcome: ProcedureOutcome
    last: ProcedureRecord
    """The record before its last step."""
    result: dict[str, Any] | None
    finished_at_ms: int
    catalog_version: int | None
    """The version its last change of metadata made; None: it changed nothing."""

    @cached_property
    def stored_form(self) -> StoredForm:
        """The stored form, computed once."""
        json, last = StoredModel.pack(self), self.last
        if not 0 <= last.submitted_at_ms < 1 << AT_MS_BITS:
            return StoredForm(json, len(json))
        name = last.resource.name.rpartition(".")[2]
        own = own_of(name, last.resource.id, last.submitted_at_ms)
        return StoredForm(HISTORIES.pack(json, own), len(json))

    def pack(self) -> bytes:
        """JSON, where its time is none."""
        return self.stored_form.packed

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copies without the cached stored form."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("stored_form", None)
        return copied

    @classmethod
    def unpack(cls, raw: bytes) -> bytes:
        packing = packing_of(raw, TEMPLATED)
        if packing == TEMPLATED:
            return HISTORIES.unpack(raw)
        return inflated(raw, DICTIONARY) if packing == DEFLATED else raw


@frozen
class ProcedureHistoryKey(Key[ProcedureHistory]):
    """Ids are UUIDv7, so history is in order of submission. Values are JSON deflated without what
    only that procedure has, after a byte that says so (keys/packed.py); packing 2 and plain JSON
    are read too."""

    template: ClassVar[str] = "__procedure_history/{procedure}"
    value_type: ClassVar[type[StoredModel]] = ProcedureHistory

    procedure: str

    @classmethod
    def of_ids_before(cls, wall_ms: int) -> Range:
        """Returns the range of ids made before *wall_ms*, by the clock of the server that made
        them."""
        start = cls.under().start
        digits = f"{wall_ms:012x}"
        return Range(start, start + f"{digits[:8]}-{digits[8:]}".encode())


class Idempotency(StoredModel):
    """Written with the submission, without an etcd lease; removed with the procedure's history."""

    procedure: str
    fingerprint: str
    """sha256 of method, path and canonical body: another request under the same key is refused."""
    at_ms: int

    def pack(self) -> bytes:
        """57 bytes: a mark, the id, the fingerprint and the time. JSON, if one of them is not as
        this program makes it."""
        is_ours = UUID_TEXT.fullmatch(self.procedure) and SHA256.fullmatch(self.fingerprint)
        if not is_ours or not 0 <= self.at_ms < 1 << 64 or self.format != 1:
            return super().pack()
        digests = UUID(self.procedure).bytes, bytes.fromhex(self.fingerprint)
        return PACKED_KEY.pack(ROW, *digests, self.at_ms)

    @classmethod
    def unpack(cls, raw: bytes) -> bytes:
        if packing_of(raw, ROW) == JSON:
            return raw
        if len(raw) != PACKED_KEY.size:
            raise ValueError("an idempotency key of another size")
        _, procedure, fingerprint, at_ms = PACKED_KEY.unpack(raw)
        facts = {"procedure": str(UUID(bytes=procedure)), "fingerprint": fingerprint.hex()}
        return orjson.dumps({**facts, "at_ms": at_ms})


@frozen
class IdempotencyKey(Key[Idempotency]):
    """A value is 57 bytes: a mark, id, fingerprint, time (keys/packed.py); JSON is read too."""

    template: ClassVar[str] = "__idempotency/{digest}"
    value_type: ClassVar[type[StoredModel]] = Idempotency

    digest: str
