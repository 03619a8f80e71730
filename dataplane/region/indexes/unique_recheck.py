"""Entries of a unique index that meet others of their key: whose row still has the values?

An entry that a job has made of a row at a mark loses to whatever is newer. For an index that is
not unique that is all there is to it, since a key is of one row. A unique key is of whichever row
has the values, and what is newer may speak of another one: a tombstone of a row that is gone, while
the row of the older entry lives; or an entry of a row that came while the older one was in no
index. So every key that stands twice, among the job's entries and those of the region, is settled
by the rows as they are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.files.file_reader import FileReader
from dataplane.region.format.columns import KEY, OP, PUT, VERSION
from dataplane.region.format.families import ENTRY_COLUMNS, ROW
from dataplane.region.format.key_range import KeyRange, key_after
from dataplane.region.indexes.index_entries import IndexDef, duplicate, entry_keys, repeated, whole
from dataplane.region.memory.memtable import sorted_by_key
from dataplane.region.reads.lookup import (
    LookupView,
    live_rows,
    merge_sources,
    newest_rows,
    scan_bytes,
)
from dataplane.region.reads.merge import merge_versions
from metasrv_base.errors import Refused
from metasrv_base.wire.node.offenders import OFFENDERS_MAX, Duplicate, Offenders

KEYS_AT_ONCE = 1024
KEY_BYTES_AT_ONCE = 1 << 20
"""The most bytes of keys that are looked up together."""
SETTLED_BYTES_MAX = 8 << 20
"""The most bytes of entries that are put at a time. Those of one lookup may be beyond it."""
LOOKUP_BYTES = 24 << 20
"""The memory that one lookup takes at most, about: `KEYS_AT_ONCE` keys, entries and keys of rows,
as Arrow and as Python have them."""
_PUT_BYTES = 200  # measured: two objects, a pair and its place in a list
OFFENDERS_BYTES_MAX = 256 << 10
"""The most bytes of offenders in an answer, which the node keeps."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Entries and rows of a region at one moment, and what a job has made beside them."""

    entries: LookupView
    rows: LookupView
    made: tuple[FileReader, ...]
    index: IndexDef


@dataclass(frozen=True, slots=True)
class Wrong:
    """A key that would be wrong once the job's entries are taken: it must lead to its one row, or
    more rows than one have it."""

    key: bytes
    rows: tuple[bytes, ...]


def recheck_bytes(snapshot: Seen) -> int:
    """The memory that a scan of all entries takes, the job's too, and what is to be put. Reads the
    footers of the job's files."""
    scan = scan_bytes(_all_entries(snapshot), KeyRange(), ENTRY_COLUMNS)
    return scan + SETTLED_BYTES_MAX + LOOKUP_BYTES


def contested(snapshot: Seen) -> Iterator[bytes]:
    """Keys that would be wrong. Looks at every entry: it may go on beside writers, if what they
    write meanwhile is looked at behind."""
    sources = merge_sources(_all_entries(snapshot), KeyRange(), ENTRY_COLUMNS)
    for window in merge_versions(sources):
        for entries in repeated([window]):
            yield from (wrong.key for wrong in wrong_keys(entries, snapshot))


def _all_entries(snapshot: Seen) -> LookupView:
    entries = snapshot.entries
    return LookupView(entries.memtables, (*snapshot.made, *entries.files), entries.guard)


def written_since(entries: LookupView, version: int, start: bytes = b"") -> Iterator[bytes]:
    """Keys from *start* on, in order, of entries that were put or deleted behind that row version;
    a key may come several times."""
    files = tuple(file for file in entries.files if file.entry.max_version > version)
    newer = LookupView(entries.memtables, files, entries.guard)
    for window in merge_versions(merge_sources(newer, KeyRange(start), ENTRY_COLUMNS)):
        recent = window.filter(pc.greater(window.column(VERSION), pa.scalar(version, pa.int64())))
        yield from recent.column(KEY).to_pylist()


@dataclass
class Rivals:
    """Keys that more rows than one have: all counted, the first ones named."""

    index: IndexDef
    total: int = 0
    duplicates: list[Duplicate] = field(default_factory=list)
    _room: int = field(default_factory=lambda: OFFENDERS_BYTES_MAX)

    def add(self, wrong: Wrong) -> None:
        self.total += 1
        named = duplicate(self.index, wrong.key, wrong.rows)
        self._room -= len(named.model_dump_json())
        if self._room > 0 and len(self.duplicates) < OFFENDERS_MAX:
            self.duplicates.append(named)

    def check(self) -> None:
        """Raises Refused `unique-violation` with the facts of an `Offenders` if there are any."""
        if self.total:
            offenders = Offenders(
                index=self.index.family, duplicates=self.duplicates, total=self.total
            )
            raise Refused("unique-violation", **offenders.model_dump())


@dataclass(frozen=True, slots=True)
class Settled:
    """Entries that must be put for some keys, each with its row."""

    puts: list[tuple[bytes, bytes]]
    following: bytes | None
    """Keys from this one on are not settled yet; None: all are."""


def settle_some(keys: Iterable[bytes], snapshot: Seen, rivals: Rivals) -> Settled:
    """Settles the first of those keys, which come in order and may come several times: as many as
    have `SETTLED_BYTES_MAX` of entries to be put. Nobody writes meanwhile."""
    puts: list[tuple[bytes, bytes]] = []
    room = SETTLED_BYTES_MAX
    for part in _parts_of(keys):
        tables = [reader.rows_of(part, ENTRY_COLUMNS) for reader in snapshot.made]
        tables.append(newest_rows(snapshot.entries, part, ENTRY_COLUMNS, as_seen=True))
        for wrong in wrong_keys(sorted_by_key(pa.concat_tables(tables)), snapshot):
            if len(wrong.rows) > 1:
                rivals.add(wrong)
            else:
                puts.append((wrong.key, wrong.rows[0]))
                room -= len(wrong.key) + len(wrong.rows[0]) + _PUT_BYTES
        if room <= 0:
            return Settled(puts, key_after(part[-1]))
    return Settled(puts, None)


def _parts_of(keys: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The keys without repetitions, bounded in number and bytes; one at least."""
    part: list[bytes] = []
    size = 0
    for key, _ in groupby(keys):
        if part and (len(part) == KEYS_AT_ONCE or size + len(key) > KEY_BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(key)
        size += len(key)
    if part:
        yield part


def wrong_keys(entries: pa.Table, snapshot: Seen) -> Iterator[Wrong]:
    """Yields the keys that would be wrong. *entries* are all that stand with some keys, the job's
    too, by key and newest first."""
    puts = entries.filter(pc.equal(entries.column(OP), pa.scalar(PUT, pa.uint8())))
    key_of = _keys_of_rows(pc.unique(whole(puts.column(ROW))).to_pylist(), snapshot)
    columns = (entries.column(name).to_pylist() for name in (KEY, OP, ROW))
    for key, group in groupby(zip(*columns, strict=True), key=lambda entry: entry[0]):
        standing = [row if op == PUT else None for _, op, row in group]
        living = {row: None for row in standing if row is not None and key_of.get(row) == key}
        if len(living) > 1 or (living and standing[0] not in living):
            yield Wrong(key, tuple(living))


def _keys_of_rows(rows: list[bytes], snapshot: Seen) -> dict[bytes, bytes]:
    """The entries that rows have as they are; those that are gone are left out."""
    keys_by_row: dict[bytes, bytes] = {}
    for first in range(0, len(rows), KEYS_AT_ONCE):
        some = rows[first : first + KEYS_AT_ONCE]
        living = live_rows(snapshot.rows, some, snapshot.index.columns, as_seen=True)
        keys = entry_keys(living, snapshot.index).to_pylist()
        keys_by_row |= zip(living.column(KEY).to_pylist(), keys, strict=True)
    return keys_by_row
