"""Checksums of a file's blocks, so that whatever part of it is read is checked when it is read.

A Parquet file is its body (row groups), then its footer. The footer bears the crc32 of each block
of 16 KiB of the body (`footer`), the manifest the crc32 of the footer. So no byte is believed that
was not checked, and opening a region reads no file.
"""

import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.region.disk.disk import Disk
from metasrv_base.errors import Corrupt

BLOCK_BYTES = 16 << 10


def sums_of(data: bytes | memoryview) -> list[int]:
    return [
        zlib.crc32(data[start : start + BLOCK_BYTES]) for start in range(0, len(data), BLOCK_BYTES)
    ]


@dataclass(frozen=True, slots=True)
class FileBody:
    """The part of a file before its footer, and what it must be."""

    path: str
    bytes: int
    sums: Sequence[int]


def read_blocks(disk: Disk, body: FileBody, first: int, end: int) -> bytes:
    """Block *first* up to block *end*, in one read. Raises Corrupt if one is not as written."""
    start, stop = first * BLOCK_BYTES, min(end * BLOCK_BYTES, body.bytes)
    data = disk.read(body.path, start, stop - start)
    if len(data) != stop - start or sums_of(memoryview(data)) != list(body.sums[first:end]):
        raise Corrupt(path=body.path, offset=start, reason="a block's checksum is wrong")
    return data


class _Seekable(io.RawIOBase):
    """A body as Arrow wants to see it. Not shared between threads."""

    def __init__(self, body: FileBody) -> None:
        self._body = body
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence == io.SEEK_CUR:
            offset += self._at
        elif whence == io.SEEK_END:
            offset += self._body.bytes
        self._at = offset
        return offset

    def tell(self) -> int:
        return self._at


class CheckedSpan(_Seekable):
    """The bytes from *start* up to *end* of a body, which are read and checked together; the rest
    of it reads as if the file ended. Raises as `read_blocks`."""

    def __init__(self, disk: Disk, body: FileBody, start: int, end: int) -> None:
        super().__init__(body)
        first = start // BLOCK_BYTES
        data = read_blocks(disk, body, first, -(-end // BLOCK_BYTES))
        self._first = first * BLOCK_BYTES
        self._data = memoryview(data)

    def read(self, size: int = -1, /) -> memoryview:
        """Copies nothing."""
        start = self._at - self._first
        if start < 0:
            return self._data[:0]
        part = self._data[start : start + size] if size >= 0 else self._data[start:]
        self._at += len(part)
        return part


class CheckedBody(_Seekable):
    """A whole body, of which each part is read when Arrow asks for it. Raises Corrupt, inside what
    Arrow makes of it, when a block is not what was written."""

    def __init__(self, disk: Disk, body: FileBody) -> None:
        super().__init__(body)
        self._disk = disk
        self._last: tuple[int, bytes] = (-1, b"")
        """The last block that was read, by number: the next read mostly begins in it."""

    def read(self, size: int = -1, /) -> bytes:
        rest = max(self._body.bytes - self._at, 0)
        length = rest if size < 0 else min(size, rest)
        if length == 0:
            return b""
        first, end = self._at // BLOCK_BYTES, -(-(self._at + length) // BLOCK_BYTES)
        data = self._blocks(first, end)
        skipped = self._at - first * BLOCK_BYTES
        self._at += length
        return data[skipped : skipped + length]

    def _blocks(self, first: int, end: int) -> bytes:
        """Reads the blocks from *first* to *end*, exclusive."""
        number, block = self._last
        if first == number:
            return block if end == first + 1 else block + self._blocks(first + 1, end)
        data = read_blocks(self._disk, self._body, first, end)
        self._last = (end - 1, data[(end - 1 - first) * BLOCK_BYTES :])
        return data
