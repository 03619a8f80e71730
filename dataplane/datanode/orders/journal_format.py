"""The records of the node's journal, and a file of them: a log segment with one record for each.

A file is a segment (dataplane/log/records.py) of owner 0; its number is its epoch. Positions rise
through all files. What a file begins with was synced before the file had its name, so damage to it
is `Corrupt`, and so is damage to any commit that a later record knows to be durable. A crash leaves
at most a part of the newest commit, which was never answered for and is left out.

Files of before are lines of text (journal_format_v1.py). Stored format, version 2:
tests/golden/node/journal.v2.bin.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dataplane.log.records import (
    LogPosition,
    RecordType,
    SegmentHeader,
    refuse_gap,
    refuse_unknown,
    scan_records,
)
from dataplane.log.segment import SegmentRecords
from metasrv_base.errors import Corrupt

FORMAT = 1
"""The format of the records' JSON; the frame has a number of its own."""


class JournalRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class JournalOpened(JournalRecord):
    """First record of every journal file: whose it is."""

    kind: Literal["opened"] = "opened"
    format: int = FORMAT
    node_id: str


class Joined(JournalRecord):
    """The cluster this node belongs to. Written once; another cluster is refused ever after, unless
    it adopts the node."""

    kind: Literal["joined"] = "joined"
    cluster_id: str


class Adopted(JournalRecord):
    """A cluster that was restored from a backup of `from_cluster_id` has adopted this node. From
    here on the old cluster is refused like any other; its terms and orders count no more, and the
    tombstones before this record refuse nothing."""

    kind: Literal["adopted"] = "adopted"
    cluster_id: str
    from_cluster_id: str


class TermSeen(JournalRecord):
    """The highest election term heard of; never falls."""

    kind: Literal["term"] = "term"
    term: int


class Dropped(JournalRecord):
    """Tombstone of a region: the cluster of the last `Joined` or `Adopted` never creates the id
    here again."""

    kind: Literal["dropped"] = "dropped"
    region_id: str


class JournalError(JournalRecord):
    code: str
    facts: dict[str, Any]


class Executed(JournalRecord):
    """The last order executed for a region, and what was answered. Rises by (term, number)."""

    kind: Literal["executed"] = "executed"
    region_id: str
    term: int
    number: int
    op: str
    error: JournalError | None = None
    floor_version: int | None = None


Record = Annotated[
    JournalOpened | Joined | Adopted | TermSeen | Dropped | Executed, Field(discriminator="kind")
]

_RECORD: TypeAdapter[Record] = TypeAdapter(Record)
_KNOWN = (RecordType.NODE, RecordType.DURABLE)
_OWNER = 0


class Journal(NamedTuple):
    """The whole records of a file, and the position of the last one."""

    records: list[Record]
    last: LogPosition


def header_of(number: int) -> SegmentHeader:
    """The header of the journal's file of that number."""
    return SegmentHeader(_OWNER, (number, 1, 1))


def contents_of(records: Sequence[Record], number: int, after: int) -> list[SegmentRecords]:
    """Encodes records that follow the sequence *after* in the file of that number."""
    return [
        SegmentRecords(
            RecordType.NODE, LogPosition(number, sequence), record.model_dump_json().encode()
        )
        for sequence, record in enumerate(records, start=after + 1)
    ]


def decode(data: bytes, number: int, name: str) -> Journal:
    """Raises `Corrupt` for damage to what was synced, for records that do not follow one another,
    and for a type of record that this program does not know."""
    records: list[Record] = []
    last: LogPosition | None = None
    for record in scan_records(data, header_of(number), name).records:
        refuse_unknown(record, _KNOWN, name)
        if record.type == RecordType.DURABLE:
            continue
        refuse_gap(last, record, name)
        last = record.position
        records.append(parsed(bytes(record.payload), name))
    must_begin(records, name)
    assert last is not None, "it begins with a record"
    return Journal(records, last)


def must_begin(records: Sequence[Record], name: str) -> None:
    """Raises `Corrupt` without the first record: it was synced before the file had its name."""
    if not records or not isinstance(records[0], JournalOpened):
        raise Corrupt(journal=name, reason="the journal lacks its beginning")


def parsed(body: bytes, name: str) -> Record:
    """Raises `Corrupt` for a record that is whole, and not understood."""
    try:
        record = _RECORD.validate_json(body)
    except ValidationError as error:
        raise Corrupt(journal=name, reason="a whole record that is not understood") from error
    if isinstance(record, JournalOpened) and record.format != FORMAT:
        raise Corrupt(journal=name, journal_format=record.format, understood=FORMAT)
    return record
