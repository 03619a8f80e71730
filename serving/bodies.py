"""End of a request's body: by its length, or by its chunks (RFC 9112, 7.1). Pure.

Extensions of chunks and trailers are refused: nobody here reads them, and parsers differ on them.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from metasrv_base.errors import Refused
from serving.heads import CHUNKED

LINE_BYTES_MAX = 20
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")


class ChunkLine(StrEnum):
    """The kind of the next line of a chunked body, between pieces of data."""

    SIZE = "size"
    AFTER_DATA = "after_data"
    LAST = "last"
    NONE = "none"


# Line -> the line after it; after a size above 0 comes data first.
NEXT: Mapping[ChunkLine, ChunkLine] = {
    ChunkLine.SIZE: ChunkLine.AFTER_DATA,
    ChunkLine.AFTER_DATA: ChunkLine.SIZE,
    ChunkLine.LAST: ChunkLine.NONE,
}


class RequestBody:
    """The rest of one request, as it comes."""

    def __init__(self, length: int) -> None:
        """Begins a body of *length* bytes, or one in chunks (CHUNKED)."""
        self._data = max(length, 0)
        """Bytes of data until the next line, or the end."""
        self._line = ChunkLine.SIZE if length == CHUNKED else ChunkLine.NONE
        self._begun = b""
        """Bytes of a line whose end has not arrived yet."""

    @property
    def is_over(self) -> bool:
        return not self._data and self._line is ChunkLine.NONE

    def take(self, data: bytes) -> int:
        """Returns how many bytes of *data*, from its start, belong to this body.

        Raises Refused `malformed-request`.
        """
        offset = 0
        while offset < len(data) and not self.is_over:
            if self._data:
                step = min(self._data, len(data) - offset)
                self._data -= step
                offset += step
            else:
                offset = self._read_line(data, offset)
        return offset

    def _read_line(self, data: bytes, offset: int) -> int:
        end = data.find(b"\n", offset) + 1
        self._begun += data[offset : end or len(data)]
        if len(self._begun) > LINE_BYTES_MAX:
            raise _malformed()
        if not end:
            return len(data)
        line, self._begun = self._begun, b""
        self._follow(line)
        return end

    def _follow(self, line: bytes) -> None:
        if self._line is ChunkLine.SIZE:
            match = _SIZE.fullmatch(line)
            if match is None:
                raise _malformed()
            self._data = int(match[1], 16)
            self._line = NEXT[ChunkLine.SIZE] if self._data else ChunkLine.LAST
        elif line != b"\r\n":
            raise _malformed()
        else:
            self._line = NEXT[self._line]


def _malformed() -> Refused:
    return Refused("malformed-request", reason="its body is not cut into plain chunks")
