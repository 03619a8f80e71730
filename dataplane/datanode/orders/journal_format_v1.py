"""The node's journal as it was before it had the record format of logs: read, never written.

A line is `crc32 of the JSON, 8 hexadecimal digits` SPACE `JSON` NEWLINE. A journal that a crash
cut or tore ends with a part of a line, which was never answered for and is left out; damage with a
whole record behind it is `Corrupt`. Stored format, version 1: tests/golden/node/journal.v1.txt.
"""

import re
import zlib

from dataplane.datanode.orders.journal_format import Record, must_begin, parsed
from metasrv_base.errors import Corrupt

_LINE = re.compile(rb"([0-9a-f]{8}) (\{[^\n]*\})\n")
_BEGINNING = re.compile(rb"[0-9a-f]{8} \{")


def is_lines(data: bytes) -> bool:
    """Whether a file is of this format."""
    return _BEGINNING.match(data) is not None


def decode(data: bytes, name: str) -> list[Record]:
    """The whole records of a journal, in order. Raises `Corrupt` for damage before its end."""
    records: list[Record] = []
    offset = 0
    while offset < len(data):
        line = _whole_line(data, offset)
        if line is None:
            _must_be_the_tail(data, offset, name)
            break
        records.append(parsed(line[2], name))
        offset = line.end()
    must_begin(records, name)
    return records


def _whole_line(data: bytes, offset: int) -> re.Match[bytes] | None:
    line = _LINE.match(data, offset)
    return line if line is not None and int(line[1], 16) == zlib.crc32(line[2]) else None


def _must_be_the_tail(data: bytes, offset: int, name: str) -> None:
    """A torn tail has no whole record behind it, wherever one might begin."""
    for position in range(offset + 1, len(data)):
        if _whole_line(data, position) is not None:
            raise Corrupt(journal=name, damaged_at=offset, whole_record_at=position)
