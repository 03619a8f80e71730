"""A view of a region at one moment, and the reading of rows by key and by range from it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

import pyarrow as pa

from dataplane.region.files.file_reader import SCAN, FileReader
from dataplane.region.format.columns import DELETE, KEY, OP, VERSION, ColumnDef, file_schema
from dataplane.region.format.conforming import conformed
from dataplane.region.format.key_range import KeyRange, cut_to_range
from dataplane.region.format.parts import PartSize
from dataplane.region.format.room import LookupRoom
from dataplane.region.format.row_hash import hashes_of_keys
from dataplane.region.format.row_keys import RowKeys
from dataplane.region.memory.memtable import Memtable, VersionPosition, newest_by_key
from dataplane.region.reads.merge import MergeSource, without_tombstones
from dataplane.region.reads.overlaps import most_together

WINDOW_BYTES = 4 << 20
"""Bytes of rows of all files that a scan or a merge decodes together."""
PARTS = 4
"""Decoded parts of a file that a scan has in memory: the one before, the one in its window, and
their rows in order, twice while they become an answer."""
DECODE_TIMES = 2
"""The memory that it takes to decode a row group, which one file does at a time, by its bytes."""
SORT_TIMES = 3
"""The memory that it takes to sort rows in memory, by their bytes: they are gathered and ordered,
and what stays is counted as rows."""
ANSWER_BYTES = 4 << 20
"""Pieces of an answer on their way."""
SCAN_BYTES = 256 << 10

_PARTS_OF_LIMIT = 4
_ROWS_AT_ONCE_MIN = 512
"""Fewer cost more than they save: a part takes some 50 us to begin."""

Counted = tuple[tuple[Memtable, int], ...]


@dataclass(frozen=True, slots=True)
class LookupView:
    """Memtables, each up to the number of rows seen, newest first; files, newest first.

    A scan sees exactly this, and so do rows by key `as_seen`. Otherwise they come from the
    memtables as they are when asked. `guard` is held while rows are counted, and no longer: it
    keeps a batch from being seen in part.
    """

    memtables: Counted
    files: tuple[FileReader, ...]
    guard: Lock = field(default_factory=Lock)

    def counted_now(self) -> Counted:
        """The same memtables, up to the rows that they have now."""
        with self.guard:
            return tuple((memtable, memtable.rows) for memtable, _ in self.memtables)


def newest_rows(
    view: LookupView,
    keys: Sequence[bytes],
    columns: Sequence[ColumnDef],
    as_seen: bool = False,
    room: LookupRoom | None = None,
) -> pa.Table:
    """One row for each key that was ever written, the newest, tombstones too, by key.

    `keys` are sorted and distinct. Raises NoRoomError where *room* has not enough for the rows.
    """
    room = room or LookupRoom()
    parts: list[pa.Table] = []
    versions: dict[bytes, int] = {}
    if view.memtables:
        memtables = view.memtables if as_seen else view.counted_now()
        parts, versions = _newest_in_memory(memtables, keys, columns, room)
    parts += _newest_in_files(view.files, keys, columns, versions, room)
    if not parts:
        return file_schema(columns).empty_table()
    return newest_by_key(parts[0] if len(parts) == 1 else pa.concat_tables(parts))


def newest_versions(view: LookupView, keys: RowKeys) -> dict[bytes, int]:
    """The current row version of each key that has a live row."""
    newest: dict[bytes, tuple[int, bool]] = {}
    memtables = [pair for pair in view.memtables if pair[0].holds_any(keys)]
    for memtable, rows in reversed(memtables):
        for key, position in zip(keys.values, memtable.find(keys, rows), strict=True):
            if position is not None:
                newest[key] = (position.version, position.is_tombstone)
    low, high = keys.bounds
    files = [reader for reader in view.files if reader.min_key <= high and low <= reader.max_key]
    if files:
        versions = {key: version for key, (version, _) in newest.items()}
        for rows in _newest_in_files(files, sorted(keys.values), (), versions, LookupRoom()):
            columns = (rows.column(name).to_pylist() for name in (KEY, VERSION, OP))
            for key, version, op in zip(*columns, strict=True):
                if key not in newest or newest[key][0] < version:
                    newest[key] = (version, op == DELETE)
    return {key: version for key, (version, is_tombstone) in newest.items() if not is_tombstone}


def live_rows(
    view: LookupView,
    keys: Sequence[bytes],
    columns: Sequence[ColumnDef],
    as_seen: bool = False,
    room: LookupRoom | None = None,
) -> pa.Table:
    """The live rows of those keys, by key, as `columns.row_schema`. Raises as `newest_rows`."""
    newest = newest_rows(view, sorted(set(keys)), columns, as_seen, room)
    return without_tombstones(newest).drop_columns([OP])


def merge_sources(
    view: LookupView, keys: KeyRange, columns: Sequence[ColumnDef], rows_at_once: int = SCAN.rows
) -> list[MergeSource]:
    """Returns the files and memtables to merge. *rows_at_once* rows of a file are decoded together;
    bytes are bounded in any case."""
    schema = file_schema(columns)
    files = files_with(view, keys)
    share = PartSize(rows_at_once, share_of_window(most_together(files)))
    sources = [
        MergeSource(
            max(reader.min_key, keys.start), partial(reader.scan, keys, tuple(columns), share)
        )
        for reader in files
    ]
    sources.extend(
        MergeSource(b"", partial(_open_memory, run, keys, schema))
        for memtable, rows in view.memtables
        for run in memtable.sorted_runs(rows)
    )
    return sources


def scan_bytes(view: LookupView, keys: KeyRange, columns: Sequence[ColumnDef]) -> int:
    """The memory that a scan or a merge of *view* takes at most: what it decodes of each file, the
    rows of a window in order, and a sorted copy of rows in memory that no scan has left yet. Reads
    footers where entries do not tell the size of files, and may then wait for the disk."""
    files = files_with(view, keys)
    share = share_of_window(most_together(files))
    sizes = {reader: reader.scan_size(columns, share) for reader in files}
    unsorted = sum(memtable.unsorted_bytes for memtable, _ in view.memtables)
    in_memory = sum(memtable.bytes for memtable, _ in view.memtables)
    answer = min(ANSWER_BYTES, sum(size.total for size in sizes.values()) + in_memory)
    return (
        most_together(files, lambda file: PARTS * sizes[file].part + sizes[file].fixed)
        + DECODE_TIMES * max((size.group for size in sizes.values()), default=0)
        + SORT_TIMES * unsorted
        + answer
        + SCAN_BYTES
    )


def files_with(view: LookupView, keys: KeyRange) -> list[FileReader]:
    return [reader for reader in view.files if keys.overlaps(reader.min_key, reader.max_key)]


def share_of_window(files: int) -> int:
    """Decoded bytes that a scan holds of each of so many files that have keys in common."""
    return min(SCAN.bytes, WINDOW_BYTES // max(files, 1))


def rows_at_once(limit: int | None) -> int:
    """Rows of a file to decode together for a reader that wants *limit* rows: it may begin or end
    within them, and throws away the rest."""
    return SCAN.rows if limit is None else max(limit // _PARTS_OF_LIMIT, _ROWS_AT_ONCE_MIN)


def _newest_in_memory(
    memtables: Counted, keys: Sequence[bytes], columns: Sequence[ColumnDef], room: LookupRoom
) -> tuple[list[pa.Table], dict[bytes, int]]:
    """Rows found, and their versions."""
    schema = file_schema(columns)
    parts = []
    versions: dict[bytes, int] = {}
    rest = list(keys)
    for memtable, rows in memtables:
        positions: list[VersionPosition] = []
        missing: list[bytes] = []
        for key, position in zip(rest, memtable.find(RowKeys.of(rest), rows), strict=True):
            if position is None:
                missing.append(key)
            else:
                positions.append(position)
                versions[key] = position.version
        rest = missing
        if positions:
            parts.append(conformed(memtable.rows_at(positions, room), schema))
    return parts, versions


def _newest_in_files(
    files: Sequence[FileReader],
    keys: Sequence[bytes],
    columns: Sequence[ColumnDef],
    versions: Mapping[bytes, int],
    room: LookupRoom,
) -> list[pa.Table]:
    """Rows found, of each file that has any.

    Versions in files may interleave, those of ingested ones with memory too; so a key is settled
    only when no file that is left can have a newer one than is known. Files come in order of their
    highest version, the highest first."""
    parts: list[pa.Table] = []
    within = [
        reader
        for reader in files
        if keys and reader.min_key <= keys[-1] and keys[0] <= reader.max_key
    ]
    if not within:
        return parts
    rest, newest = list(keys), dict(versions)
    hashes = hashes_of_keys(rest)
    for reader in within:
        highest = reader.entry.max_version
        if newest:
            unsettled = [
                position for position, key in enumerate(rest) if newest.get(key, -1) < highest
            ]
            if len(unsettled) < len(rest):
                rest, hashes = [rest[position] for position in unsettled], hashes[unsettled]
        if not rest:
            break
        rows = reader.rows_of(rest, columns, hashes, room)
        if not rows.num_rows:
            continue
        parts.append(rows)
        pairs = zip(rows.column(KEY).to_pylist(), rows.column(VERSION).to_pylist(), strict=True)
        for key, version in pairs:
            newest[key] = max(version, newest.get(key, -1))
    return parts


def _open_memory(run: pa.Table, keys: KeyRange, schema: pa.Schema) -> Iterator[pa.Table]:
    yield conformed(cut_to_range(run, keys), schema)
