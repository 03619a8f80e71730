"""Reads of an open region: rows and entries by key and by range, and their checksum."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.serving import Serving
from dataplane.region.files.block_cache import NotResidentError
from dataplane.region.files.file_reader import SCAN
from dataplane.region.format.checksum import RowsDigest, digest_rows
from dataplane.region.format.columns import OP, chosen
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.room import LookupRoom, NoRoomError
from dataplane.region.manifests.floor import check_floor, check_index
from dataplane.region.reads.index_scan import (
    ENTRIES_AT_ONCE,
    LOOKUP_TIMES,
    as_answered,
    as_stored,
    live_entries,
    rows_by_entry,
)
from dataplane.region.reads.lookup import (
    LookupView,
    live_rows,
    merge_sources,
    rows_at_once,
    scan_bytes,
)
from dataplane.region.reads.merge import merge_live
from dataplane.region.reads.value_scan import ValueRows, scan_values

Reserve = Callable[[int], None]
"""Called with the bytes that are about to be taken; it may raise."""


def _unbounded(_size: int) -> None:
    """Reserves nothing."""


@dataclass(frozen=True, slots=True)
class ScanBounds:
    limit: int | None = None
    """Rows."""
    reserve: Reserve = _unbounded


class RegionReader:
    """Safe for threads. Readers take no lock while they read files.

    `schema_version` is the reader's; None: one whom no floor concerns. Raises Conflict
    `schema-version-stale` if the floor took hold before what is read was settled.
    """

    def __init__(self, serving: Serving, content: RegionContent) -> None:
        self._serving = serving
        self._content = content

    def get(
        self,
        keys: Sequence[bytes],
        column_ids: Collection[int] | None = None,
        schema_version: int | None = None,
        room: LookupRoom | None = None,
    ) -> pa.Table:
        """The live rows of those keys, by key: `_key`, `_version`, `c{id}` in order of id. Raises
        NoRoomError where *room* has not enough for them."""
        with self.view([ROWS], schema_version) as views:
            columns = chosen(self._content.columns, column_ids)
            rows = live_rows(views[ROWS], keys, columns, room=room)
        if schema_version is not None:  # rows came in behind the view
            check_floor(self._content.schema, schema_version)
        return rows

    def get_resident(
        self,
        keys: Sequence[bytes],
        column_ids: Collection[int] | None,
        schema_version: int,
        room: LookupRoom | None = None,
    ) -> pa.Table | None:
        """Returns a few rows as `get` does, for an event loop: None where a disk or a lock would
        have to be waited for, or *room* has not enough."""
        self._serving.check()
        view = self._content.resident(ROWS, schema_version)
        if view is None:
            return None
        try:
            columns = chosen(self._content.columns, column_ids)
            return live_rows(view, keys, columns, as_seen=True, room=room)
        except (NotResidentError, NoRoomError):
            return None

    def get_entries(
        self,
        index: int,
        keys: Sequence[bytes],
        schema_version: int | None = None,
        room: LookupRoom | None = None,
    ) -> pa.Table:
        """The live entries with those keys, by key: `_entry`, `_key` of the row, and the entry's
        `_version`. Raises NoRoomError where *room* has not enough for them."""
        with self.view([index], schema_version) as views:
            check_index(self._content.schema, index, schema_version or 0)
            entries = live_rows(views[index], keys, ENTRY_COLUMNS, room=room)
        if schema_version is not None:  # entries came in behind the view
            check_floor(self._content.schema, schema_version)
        return as_answered(entries)

    def scan(
        self,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        limit: int | None = None,
        schema_version: int | None = None,
        reserve: Reserve = _unbounded,
    ) -> Generator[pa.RecordBatch]:
        """Live rows by key, as of the first `next`; `key_range.key_after` of the last continues.

        Columns as in `get`. Streams: at most a row group of each file in its window is in memory.
        *reserve* is told the bytes that the scan will take, before it takes them.
        """
        with self.view([ROWS], schema_version) as views:
            columns = chosen(self._content.columns, column_ids)
            reserve(scan_bytes(views[ROWS], keys or KeyRange(), columns))
            at_once = rows_at_once(limit)
            sources = merge_sources(views[ROWS], keys or KeyRange(), columns, at_once)
            yield from batches_of(limited(map(_without_op, merge_live(sources)), limit))

    def scan_values(
        self,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        rows_at_once: int = SCAN.rows,
        schema_version: int | None = None,
        reserve: Reserve = _unbounded,
    ) -> Generator[ValueRows]:
        """The rows of `scan` without keys and versions, in parts of about a MiB: where nothing is
        to be merged, keys are not decoded."""
        with self.view([ROWS], schema_version) as views:
            columns = chosen(self._content.columns, column_ids)
            reserve(scan_bytes(views[ROWS], keys or KeyRange(), columns))
            yield from scan_values(views[ROWS], keys or KeyRange(), columns, rows_at_once)

    def scan_index(
        self,
        index: int,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        schema_version: int | None = None,
        bounds: ScanBounds = ScanBounds(),
    ) -> Generator[pa.RecordBatch]:
        """Live rows in the order of an index, entries and rows as of the first `next`.

        `keys` is a range of entries. Columns: `_entry`, the key of the entry, and as in `get`; the
        last entry's continues. Raises as `floor.check_index`.
        """
        with self.view([ROWS, index], schema_version) as views:
            check_index(self._content.schema, index, schema_version or 0)
            columns = chosen(self._content.columns, column_ids)
            at_once = ENTRIES_AT_ONCE
            if bounds.limit is not None:
                at_once = replace(at_once, rows=min(bounds.limit, at_once.rows))
            entries, rows = views[index], views[ROWS]
            scanned = scan_bytes(entries, keys or KeyRange(), ENTRY_COLUMNS)
            bounds.reserve(scanned + LOOKUP_TIMES * at_once.bytes)
            tables = rows_by_entry(entries, rows, keys or KeyRange(), columns, at_once)
            yield from batches_of(limited(tables, bounds.limit))

    def scan_entries(
        self,
        index: int,
        keys: KeyRange | None = None,
        limit: int | None = None,
        schema_version: int | None = None,
        reserve: Reserve = _unbounded,
    ) -> Generator[pa.RecordBatch]:
        """Live entries alone, whether or not there are rows: `_entry`, `_key` of the row, and the
        entry's `_version`."""
        with self.view([index], schema_version) as views:
            check_index(self._content.schema, index, schema_version or 0)
            reserve(scan_bytes(views[index], keys or KeyRange(), ENTRY_COLUMNS))
            tables = live_entries(views[index], keys or KeyRange(), rows_at_once(limit))
            yield from batches_of(limited(tables, limit))

    def digest(
        self,
        schema_version: int | None = None,
        index: int | None = None,
        reserve: Reserve = _unbounded,
    ) -> RowsDigest:
        """Count and order-independent checksum over (key, values) of the live rows, or entries of
        an index: a full scan. *reserve*: as of `scan`."""
        if index is None:
            batches: Iterator[pa.RecordBatch] = self.scan(
                schema_version=schema_version, reserve=reserve
            )
        else:
            entries = self.scan_entries(index, schema_version=schema_version, reserve=reserve)
            batches = map(as_stored, entries)
        return sum(map(digest_rows, batches), RowsDigest())

    @contextmanager
    def view(
        self, families: Collection[int], schema_version: int | None = None
    ) -> Iterator[Mapping[int, LookupView]]:
        """The rows of each family, all as of one moment; their files stay within the block.

        A successor may merge the files away meanwhile: then it is its fence that is told.
        """
        self._serving.check()
        with self._serving.stale_first(), self._content.view(families, schema_version) as views:
            yield views


def limited(tables: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The first `limit` rows; None: all. Keeps no table while the next is made."""
    if limit is None:
        yield from tables
        return
    rest = limit
    for table in tables:
        count = min(rest, table.num_rows)
        yield table.slice(0, count)
        del table
        rest -= count
        if rest == 0:
            return


def batches_of(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Keeps no table while the next is made."""
    return chain.from_iterable(map(_as_batches, tables))


def _as_batches(table: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = table.combine_chunks().to_batches()
    return batches


def _without_op(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([OP])
