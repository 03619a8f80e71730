"""Scans of values alone: row groups that need no merge are decoded without their keys.

A row group is answered as it stands if it is plain (`footer.Footer.mixed`) and lies whole in the
range, and if no other file and no row in memory has a key between its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dataplane.region.files.file_reader import FileReader, whole_batch
from dataplane.region.format.columns import KEY, SYSTEM, ColumnDef
from dataplane.region.format.key_range import KeyRange, key_after, rows_below
from dataplane.region.format.parts import PartSize, cut
from dataplane.region.reads.lookup import LookupView, merge_sources
from dataplane.region.reads.merge import merge_live

PART = PartSize(rows=1_000_000, bytes=1 << 20)
"""The largest part of merged rows; one of plain row groups is about as large."""


@dataclass(frozen=True, slots=True)
class ValueRows:
    """Live rows in order of key, without their keys."""

    rows: pa.RecordBatch
    """`c{id}` in order of id."""
    following: bytes
    """The rows behind these have keys from this one on."""


def scan_values(
    view: LookupView, keys: KeyRange, columns: Sequence[ColumnDef], rows_at_once: int
) -> Iterator[ValueRows]:
    """First the rest of the row group in which the range begins, then plain row groups up to the
    first that is none, or shares its keys with another source; then merged rows. Whoever wants the
    plain ones behind those begins anew."""
    rest = keys
    if (high := _begun(view, keys.start)) is not None:
        end = key_after(high) if keys.end is None else min(key_after(high), keys.end)
        yield from _merged(view, KeyRange(keys.start, end), columns, rows_at_once)
        rest = KeyRange(end, keys.end)
    for part in _plain(view, rest, columns):
        yield part
        rest = KeyRange(part.following, keys.end)
    if rest.end is None or rest.start < rest.end:
        yield from _merged(view, rest, columns, rows_at_once)


def _begun(view: LookupView, start: bytes) -> bytes | None:
    """The last key of the only row group that has keys on both sides of *start*."""
    files = [reader for reader in view.files if reader.min_key < start <= reader.max_key]
    groups = [reader.first_group(start) for reader in files]
    begun = [group.high for group in groups if group is not None and group.low < start]
    return begun[0] if len(begun) == 1 else None


def _merged(
    view: LookupView, keys: KeyRange, columns: Sequence[ColumnDef], rows_at_once: int
) -> Iterator[ValueRows]:
    for table in merge_live(merge_sources(view, keys, columns, rows_at_once)):
        for piece in cut(table, PART):
            last: bytes = piece.column(KEY)[-1].as_py()
            yield ValueRows(whole_batch(piece.drop_columns(list(SYSTEM))), key_after(last))


def _plain(view: LookupView, keys: KeyRange, columns: Sequence[ColumnDef]) -> Iterator[ValueRows]:
    files = [reader for reader in view.files if keys.overlaps(reader.min_key, reader.max_key)]
    runs = [run for memtable, rows in view.memtables for run in memtable.sorted_runs(rows)]
    start = keys.start
    while plain_run := _next_plain(files, runs, KeyRange(start, keys.end)):
        reader, groups = plain_run
        rows, last = reader.values_of(groups, columns)
        start = key_after(last)
        yield ValueRows(rows, start)


def _next_plain(
    files: Sequence[FileReader], runs: Sequence[pa.Table], keys: KeyRange
) -> tuple[FileReader, list[int]] | None:
    """Row groups of one file with all the rows from `keys.start` to their last key. Reads footers
    of files that have begun by then, and of the one with the next keys."""
    begun = [reader for reader in files if reader.min_key <= keys.start <= reader.max_key]
    firsts = [(group.low, reader) for reader in begun if (group := reader.first_group(keys.start))]
    firsts += [(reader.min_key, reader) for reader in files if keys.start < reader.min_key]
    if not firsts:
        return None
    low, reader = min(firsts, key=lambda first: first[0])
    others = [first for first, other in firsts if other is not reader]
    others += [key for run in runs if (key := _first_key(run, keys.start)) is not None]
    horizon = min([*others, *([] if keys.end is None else [keys.end])], default=None)
    groups = reader.plain_groups(keys.start, horizon)
    return (reader, groups) if groups and (horizon is None or low < horizon) else None


def _first_key(run: pa.Table, start: bytes) -> bytes | None:
    """The first from *start* on."""
    row = rows_below(run, start)
    key: bytes | None = run.column(KEY)[row].as_py() if row < run.num_rows else None
    return key
