"""Rows in the order of an index: its entries and their rows, both as one view shows them."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import KEY, VERSION, ColumnDef, row_schema
from dataplane.region.format.families import ENTRY_COLUMNS, ROW
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize, cut
from dataplane.region.format.room import LookupRoom, NoRoomError
from dataplane.region.reads.lookup import LookupView, live_rows, merge_sources
from dataplane.region.reads.merge import merge_live

ENTRY = "_entry"
"""The key of the entry through which a row was found."""
ENTRIES_AT_ONCE = PartSize(rows=1024, bytes=1 << 20)
"""Entries whose rows are looked up together, unless these have more bytes: then fewer."""
LOOKUP_TIMES = 6
"""The memory that it takes, by those bytes: entries, rows as they are found, and both in order."""


def entry_schema(columns: Iterable[ColumnDef] = ()) -> pa.Schema:
    """The schema of the batches of index scans. `_key` is the row's key."""
    entry = pa.field(ENTRY, pa.binary(), nullable=False)
    return pa.schema([entry, *row_schema(columns)])


def live_entries(view: LookupView, keys: KeyRange, rows_at_once: int) -> Iterator[pa.Table]:
    """The entries alone, in their order, as `entry_schema` with the entries' versions."""
    return map(as_answered, merge_live(merge_sources(view, keys, ENTRY_COLUMNS, rows_at_once)))


def as_answered(entries: pa.Table) -> pa.Table:
    """Entries of their family, as `entry_schema`."""
    renamed = entries.select([KEY, ROW, VERSION]).rename_columns([ENTRY, KEY, VERSION])
    return renamed.cast(entry_schema())


def as_stored(entries: pa.RecordBatch) -> pa.RecordBatch:
    """Entries as their family has them."""
    return entries.rename_columns({ENTRY: KEY, KEY: ROW})


def rows_by_entry(
    entries: LookupView,
    rows: LookupView,
    keys: KeyRange,
    columns: Sequence[ColumnDef],
    at_once: PartSize,
) -> Iterator[pa.Table]:
    """The live rows to which live entries point, in the order of the entries, as `entry_schema`
    with the rows' versions. An entry without a row gives none: a checker reads entries."""
    for table in live_entries(entries, keys, at_once.rows):
        rest = table
        del table
        count = at_once.rows
        while rest.num_rows:
            part = next(cut(rest, PartSize(count, at_once.bytes)))
            try:
                yield _joined(part, rows, columns, LookupRoom(at_once.bytes if count > 1 else inf))
            except NoRoomError:
                count = part.num_rows // 2
                continue
            rest = rest.slice(part.num_rows)


def _joined(
    entries: pa.Table, rows: LookupView, columns: Sequence[ColumnDef], room: LookupRoom
) -> pa.Table:
    """Raises NoRoomError."""
    pointed = entries.column(KEY).combine_chunks()
    live = live_rows(rows, pointed.to_pylist(), columns, as_seen=True, room=room)
    positions = pc.index_in(pointed, live.column(KEY).combine_chunks())
    kept = positions.drop_null()
    keys = entries.column(ENTRY).filter(positions.is_valid())
    return live.take(kept).add_column(0, ENTRY, keys).cast(entry_schema(columns))
