"""What an open region answers: rows by key and by range, their checksum, and its size."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from dataplane.region.block_cache import NotResidentError
from dataplane.region.checksum import RowsDigest, digest_rows
from dataplane.region.columns import OP, chosen
from dataplane.region.core import Core
from dataplane.region.families import ENTRY_COLUMNS, ROWS
from dataplane.region.file_reader import SCAN
from dataplane.region.floor import check_floor, check_index
from dataplane.region.index_scan import (
    ENTRIES_AT_ONCE,
    as_answered,
    as_stored,
    live_entries,
    rows_by_entry,
)
from dataplane.region.key_range import KeyRange
from dataplane.region.lookup import (
    FILE_BYTES,
    WINDOW_BYTES,
    View,
    live_rows,
    merge_sources,
    rows_at_once,
)
from dataplane.region.merge import merge_live
from dataplane.region.region_stats import RegionStats, stats_of
from dataplane.region.value_scan import Values, scan_values


class Readable(Core):
    """Readers take no lock while they read files.

    `schema_version` is the reader's; None: one whom no floor concerns. Raises Conflict
    `schema-version-stale` if the floor took hold before what is read was settled.
    """

    def get(
        self,
        keys: Sequence[bytes],
        column_ids: Collection[int] | None = None,
        schema_version: int | None = None,
    ) -> pa.Table:
        """The live rows of those keys, by key: `_key`, `_version`, `c{id}` in order of id."""
        with self._view([ROWS], schema_version) as views:
            found = live_rows(views[ROWS], keys, chosen(self.spec.columns, column_ids))
        if schema_version is not None:  # rows came in behind the view
            check_floor(self.schema, schema_version)
        return found

    def get_resident(
        self, keys: Sequence[bytes], column_ids: Collection[int] | None, schema_version: int
    ) -> pa.Table | None:
        """As `get`, of a few keys, for an event loop: None where a disk or a lock would have to be
        waited for."""
        self._serving.check()
        view = self._content.resident(ROWS, schema_version)
        if view is None:
            return None
        try:
            return live_rows(view, keys, chosen(self.spec.columns, column_ids), as_seen=True)
        except NotResidentError:
            return None

    def get_entries(
        self, index: int, keys: Sequence[bytes], schema_version: int | None = None
    ) -> pa.Table:
        """The live entries with those keys, by key: `_entry`, `_key` of the row, and the entry's
        `_version`."""
        with self._view([index], schema_version) as views:
            check_index(self.schema, index, schema_version or 0)
            found = live_rows(views[index], keys, ENTRY_COLUMNS)
        if schema_version is not None:  # entries came in behind the view
            check_floor(self.schema, schema_version)
        return as_answered(found)

    def scan(
        self,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        limit: int | None = None,
        schema_version: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Live rows by key, as of the first `next`; `key_range.key_after` of the last continues.

        Columns as in `get`. Streams: at most a row group of each file in its window is in memory.
        """
        with self._view([ROWS], schema_version) as views:
            columns = chosen(self.spec.columns, column_ids)
            at_once = rows_at_once(limit)
            sources = merge_sources(views[ROWS], keys or KeyRange(), columns, at_once)
            for table in limited(merge_live(sources), limit):
                yield from table.drop_columns([OP]).combine_chunks().to_batches()

    def scan_values(
        self,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        rows_at_once: int = SCAN.rows,
        schema_version: int | None = None,
    ) -> Iterator[Values]:
        """The rows of `scan` without keys and versions, in parts of about a MiB: where nothing is
        to be merged, keys are not decoded."""
        with self._view([ROWS], schema_version) as views:
            columns = chosen(self.spec.columns, column_ids)
            yield from scan_values(views[ROWS], keys or KeyRange(), columns, rows_at_once)

    def scan_index(
        self,
        index: int,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        limit: int | None = None,
        schema_version: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Live rows in the order of an index, entries and rows as of the first `next`.

        `keys` is a range of entries. Columns: `_entry`, the key of the entry, and as in `get`; the
        last entry's continues. Raises as `floor.check_index`.
        """
        with self._view([ROWS, index], schema_version) as views:
            check_index(self.schema, index, schema_version or 0)
            columns = chosen(self.spec.columns, column_ids)
            at_once = ENTRIES_AT_ONCE
            if limit is not None:
                at_once = replace(at_once, rows=min(limit, at_once.rows))
            entries, rows = views[index], views[ROWS]
            found = rows_by_entry(entries, rows, keys or KeyRange(), columns, at_once)
            for table in limited(found, limit):
                yield from table.combine_chunks().to_batches()

    def scan_entries(
        self,
        index: int,
        keys: KeyRange | None = None,
        limit: int | None = None,
        schema_version: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Live entries alone, whether or not there are rows: `_entry`, `_key` of the row, and the
        entry's `_version`."""
        with self._view([index], schema_version) as views:
            check_index(self.schema, index, schema_version or 0)
            found = live_entries(views[index], keys or KeyRange(), rows_at_once(limit))
            for table in limited(found, limit):
                yield from table.combine_chunks().to_batches()

    def digest(self, schema_version: int | None = None, index: int | None = None) -> RowsDigest:
        """Count and order-independent checksum over (key, values) of the live rows, or entries of
        an index: a full scan."""
        if index is None:
            found = self.scan(schema_version=schema_version)
        else:
            found = map(as_stored, self.scan_entries(index, schema_version=schema_version))
        return sum(map(digest_rows, found), RowsDigest())

    def scan_bytes(self, index: int | None = None) -> int:
        """The memory that a scan may hold at once: a window and its sorted copy, what it decodes of
        each file, and a sorted copy of rows in memory that no scan has left yet. Waits for nothing.
        """
        families = {ROWS} if index is None else {ROWS, index}
        files = sum(entry.family in families for entry in self._manifest.files)
        unsorted = sum(memory.unsorted_bytes(families) for memory in self._content.memories)
        return 2 * WINDOW_BYTES + files * FILE_BYTES + unsorted

    def stats(self) -> RegionStats:
        """Waits for nothing: heartbeats ask for it on the event loop. Figures beside a write or a
        flush may be of before or after it."""
        content, log = self._content, self._log
        return stats_of(
            self._manifest, content.memories, log.size_bytes, content.version, content.sequence
        )

    @contextmanager
    def _view(
        self, families: Collection[int], schema_version: int | None = None
    ) -> Iterator[Mapping[int, View]]:
        """A successor may merge the files away meanwhile: then it is its fence that is told."""
        self._serving.check()
        with self._stale_first(), self._content.view(families, schema_version) as views:
            yield views


def limited(tables: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The first `limit` rows; None: all."""
    rest = limit
    for table in tables:
        part = table.slice(0, rest)
        yield part
        if rest is not None:
            rest -= part.num_rows
            if rest == 0:
                return
