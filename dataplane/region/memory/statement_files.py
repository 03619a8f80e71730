"""Files of applied statements, one for each table, so that manifests need not list them.

A file is a magic, and then the table's records. It is appended to when the log is cut; a manifest
names it with the length and the crc32 that it then has. Each opening writes files of its own in
its own root, so that nothing of a borrowed root is needed.
"""

import posixpath
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from dataplane.region.disk.disk import AppendFile, Disk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.format.names import Numbered, Opening, statements_name
from dataplane.region.manifests.manifest import StatementFile
from dataplane.region.memory.statement_table import RECORD_BYTES, StatementTable
from metasrv_base.errors import Corrupt, MetaError

MAGIC = b"MSIDS\n\x01\x00"
"""The first bytes of a file, with the format, 1."""


@dataclass(slots=True)
class _Written:
    """The part of a table that is durable."""

    name: str
    file: AppendFile | None
    """The open file; None if it is closed."""
    length: int = 0
    crc32: int = 0

    def append(self, file: AppendFile, data: bytes) -> None:
        file.append(data)
        file.sync()
        self.length, self.crc32 = self.length + len(data), zlib.crc32(data, self.crc32)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    @property
    def records(self) -> int:
        return (self.length - len(MAGIC)) // RECORD_BYTES

    def entry(self) -> StatementFile:
        return StatementFile(name=self.name, bytes=self.length, crc32=f"{self.crc32:08x}")


class StatementFiles:
    """The statement files of one opening. Not safe for two threads."""

    def __init__(self, disk: Disk, root: str, opening: Opening) -> None:
        self._disk = disk
        self._root = root
        self._opening = opening
        self._number = 0
        self._written: dict[StatementTable, _Written] = {}

    def write(self, tables: Sequence[StatementTable]) -> tuple[StatementFile, ...]:
        """Appends the records that no file has yet; all are durable on return. Only the last table
        grows, and its file alone stays open.

        After an error the next call writes the table to another file.
        """
        for table in self._written.keys() - set(tables):
            self._written.pop(table).close()
        for table in tables:
            self._append(table)
        for table in tables[:-1]:
            self._written[table].close()
        return tuple(self._written[table].entry() for table in tables)

    def close(self) -> None:
        """No file stays open. What comes later is written to other files."""
        for written in self._written.values():
            written.close()

    def _append(self, table: StatementTable) -> None:
        written = self._written.pop(table, None)
        rest = table.records(written.records if written else 0)
        if written is None or (rest and written.file is None):
            written = self._begun(table.records())
        elif rest and written.file is not None:
            try:
                written.append(written.file, rest)
            except MetaError:
                written.close()
                raise
        self._written[table] = written

    def _begun(self, records: bytes) -> _Written:
        self._number += 1
        name = statements_name(Numbered(*self._opening, self._number))
        path = posixpath.join(self._root, name)
        written = _Written(name, self._disk.create(path))
        assert written.file is not None
        try:
            written.append(written.file, MAGIC + records)
            self._disk.sync_folder(self._root)
        except MetaError:
            written.close()
            with suppress(MetaError):  # no manifest names it, and the next call takes another name
                self._disk.remove(path)
            raise
        return written


def read_statements(disk: Disk, root: str, entry: StatementFile) -> bytes:
    """The records that the manifest names. Raises Corrupt if these are not the bytes that were
    named, Unavailable `region-lost` if they are gone."""
    path = posixpath.join(root, entry.name)
    with lost_if_missing(root, entry.name):
        data = disk.read(path, 0, entry.bytes)
    is_whole = len(data) == entry.bytes and f"{zlib.crc32(data):08x}" == entry.crc32
    if not is_whole or not data.startswith(MAGIC):
        raise Corrupt(path=path, reason="these are not the statements that the manifest names")
    return data[len(MAGIC) :]
