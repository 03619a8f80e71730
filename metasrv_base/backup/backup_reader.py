"""Judges a backup file as its bytes come; holds one line, whatever the file's size."""

import hashlib
import zlib
from collections.abc import Iterator
from enum import Enum, auto
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from metasrv_base.backup.backup_file import (
    LINE_BYTES_MAX,
    NEWEST_FORMAT,
    BackupEnd,
    BackupFailure,
    BackupHeader,
    BackupKey,
)
from metasrv_base.backup.backup_writer import GZIP
from metasrv_base.errors import MetaError, Refused
from metasrv_base.wire.problem.problems import KINDS

PIECE_BYTES = 1 << 20
"""Bytes that are unpacked at once: a small file may unpack to any size."""


class _AnyHeader(BaseModel):
    """The part of a header that every format has."""

    model_config = ConfigDict(extra="ignore", strict=True)

    kind: Literal["metasrv-backup"]
    format: int


class _Stage(Enum):
    HEADER = auto()
    KEYS = auto()
    ENDED = auto()


class BackupReader:
    """Raises Refused `invalid-backup` for what is no whole, sound backup of a known format, and the
    error that the server wrote into a backup which it could not finish."""

    def __init__(self) -> None:
        self._zip = zlib.decompressobj(wbits=GZIP)
        self._digest = hashlib.sha256()
        self._line = bytearray()
        """The beginning of a line whose end has not come yet."""
        self._stage = _Stage.HEADER
        self._last = ""
        self.header: BackupHeader | None = None
        """The first line of the file; None until it has come."""
        self.keys = 0
        """Keys so far."""

    def feed(self, data: bytes) -> Iterator[BackupKey]:
        """Yields the keys that *data* completes. Take all of them before the next call."""
        while data:
            if self._zip.eof:
                raise _invalid("there is something behind its end")
            try:
                text = self._zip.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise _invalid("it is no gzip file, or damaged") from error
            yield from self._lines(text)
            data = self._zip.unconsumed_tail or self._zip.unused_data
        # zlib may hold unpacked bytes back although all that came is consumed.
        while not self._zip.eof and (text := self._zip.decompress(b"", PIECE_BYTES)):
            yield from self._lines(text)

    def close(self) -> BackupHeader:
        """The header of a backup that has come as a whole."""
        if self.header is None or self._stage is not _Stage.ENDED or not self._zip.eof:
            raise _invalid(f"it is cut, behind {self.keys:,} keys")
        return self.header

    def _lines(self, text: bytes) -> Iterator[BackupKey]:
        self._line += text
        while (end := self._line.find(b"\n")) >= 0:
            line = bytes(self._line[: end + 1])
            del self._line[: end + 1]
            key = self._checked_line(line)
            if key is not None:
                yield key
        if len(self._line) > LINE_BYTES_MAX:
            raise _invalid(f"a line is longer than {LINE_BYTES_MAX} bytes")

    def _checked_line(self, line: bytes) -> BackupKey | None:
        try:
            match self._stage:
                case _Stage.HEADER:
                    self._begin(line)
                    return None
                case _Stage.KEYS if line.startswith(b'{"key":'):
                    return self._key(line)
                case _Stage.KEYS:
                    self._end(line)
                    return None
                case _Stage.ENDED:
                    raise _invalid("there is something behind its end")
        except ValueError as error:
            raise _invalid(f"line {self.keys + 2} is damaged") from error

    def _begin(self, line: bytes) -> None:
        try:
            number = _AnyHeader.model_validate_json(line).format
        except ValidationError as error:
            raise _invalid("it is no backup of metasrv") from error
        if number > NEWEST_FORMAT:
            raise _invalid(f"its format {number} is newer than {NEWEST_FORMAT}")
        self.header, self._stage = BackupHeader.model_validate_json(line), _Stage.KEYS
        self._digest.update(line)

    def _key(self, line: bytes) -> BackupKey:
        key = BackupKey.model_validate_json(line)
        key.raw  # noqa: B018  # its value can be unpacked
        if key.key.encode() <= self._last.encode() and self.keys:
            raise _invalid(f"{key.key} is out of order")
        self._last = key.key
        self.keys += 1
        self._digest.update(line)
        return key

    def _end(self, line: bytes) -> None:
        if line.startswith(b'{"failed":'):
            failure = BackupFailure.model_validate_json(line)
            raise _error_of(failure)
        end, header = BackupEnd.model_validate_json(line), self.header
        assert header is not None
        if not end.keys == header.keys == self.keys:
            raise _invalid(f"it has {self.keys:,} of {header.keys:,} keys")
        if end.sha256 != self._digest.hexdigest():
            raise _invalid("its digest is that of another content")
        self._stage = _Stage.ENDED


def _invalid(reason: str) -> Refused:
    return Refused("invalid-backup", reason=reason)


def _error_of(failure: BackupFailure) -> MetaError:
    kind = KINDS.get(failure.failed, KINDS["internal"])
    return kind.error(kind.code, reason=failure.reason)
