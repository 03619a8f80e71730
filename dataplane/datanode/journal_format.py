"""The node journal as bytes: one line per record, a checksum before each, whole or not at all.

A line is `crc32 of the JSON, 8 hexadecimal digits` SPACE `JSON` NEWLINE. A journal that a crash
cut or tore ends with a part of a line, which was never answered for and is left out; damage with a
whole record behind it is `Corrupt`. Stored format, version 1: tests/golden/node/journal.v1.txt.
"""

import re
import zlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from base.errors import Corrupt

FORMAT = 1


class JournalRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Opened(JournalRecord):
    """First record of every journal file: whose it is."""

    kind: Literal["opened"] = "opened"
    format: int = FORMAT
    node_id: str


class Joined(JournalRecord):
    """The cluster this node belongs to. Written once; another cluster is refused ever after."""

    kind: Literal["joined"] = "joined"
    cluster_id: str


class TermSeen(JournalRecord):
    """The highest election term heard of; never falls."""

    kind: Literal["term"] = "term"
    term: int


class Dropped(JournalRecord):
    """Tombstone of a region: the id is never created here again."""

    kind: Literal["dropped"] = "dropped"
    region_id: str


class StoredError(JournalRecord):
    code: str
    facts: dict[str, Any]


class Executed(JournalRecord):
    """The last order executed for a region, and what was answered. Rises by (term, number)."""

    kind: Literal["executed"] = "executed"
    region_id: str
    term: int
    number: int
    op: str
    error: StoredError | None = None
    floor_version: int | None = None


Record = Annotated[Opened | Joined | TermSeen | Dropped | Executed, Field(discriminator="kind")]

_RECORD: TypeAdapter[Record] = TypeAdapter(Record)
_LINE = re.compile(rb"([0-9a-f]{8}) (\{[^\n]*\})\n")


def encode(records: Iterable[Record]) -> bytes:
    return b"".join(_line(record) for record in records)


def _line(record: Record) -> bytes:
    body = record.model_dump_json().encode()
    return b"%08x %b\n" % (zlib.crc32(body), body)


def decode(data: bytes) -> list[Record]:
    """The whole records of a journal, in order. Raises `Corrupt` for damage before its end."""
    records: list[Record] = []
    at = 0
    while at < len(data):
        line = _whole_line(data, at)
        if line is None:
            _must_be_the_tail(data, at)
            break
        records.append(_parsed(line[2], at))
        at = line.end()
    return records


def _whole_line(data: bytes, at: int) -> re.Match[bytes] | None:
    line = _LINE.match(data, at)
    return line if line is not None and int(line[1], 16) == zlib.crc32(line[2]) else None


def _must_be_the_tail(data: bytes, at: int) -> None:
    """A torn tail has no whole record behind it, wherever one might begin."""
    for place in range(at + 1, len(data)):
        if _whole_line(data, place) is not None:
            raise Corrupt(journal_offset=at, whole_record_at=place)


def _parsed(body: bytes, at: int) -> Record:
    try:
        record = _RECORD.validate_json(body)
    except ValidationError as error:
        raise Corrupt(journal_offset=at, reason="a whole record that is not understood") from error
    if isinstance(record, Opened) and record.format != FORMAT:
        raise Corrupt(journal_offset=at, journal_format=record.format, understood=FORMAT)
    return record
