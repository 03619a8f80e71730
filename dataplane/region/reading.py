"""What an open region answers: rows by key and by range, their checksum, and its size."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from dataplane.region.checksum import RowsDigest, digest_rows
from dataplane.region.columns import OP, chosen
from dataplane.region.core import Core
from dataplane.region.floor import check_floor
from dataplane.region.key_range import KeyRange
from dataplane.region.lookup import View, live_rows, merge_sources
from dataplane.region.merge import merge_live
from dataplane.region.region_stats import RegionStats, stats_of


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
        with self._view(schema_version) as view:
            found = live_rows(view, keys, chosen(self.spec.columns, column_ids))
        if schema_version is not None:  # rows came in behind the view
            check_floor(self.schema, schema_version)
        return found

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
        rest = limit
        with self._view(schema_version) as view:
            columns = chosen(self.spec.columns, column_ids)
            for table in merge_live(merge_sources(view, keys or KeyRange(), columns)):
                part = table.drop_columns([OP]).slice(0, rest)
                yield from part.combine_chunks().to_batches()
                if rest is not None:
                    rest -= part.num_rows
                    if rest == 0:
                        return

    def digest(self, schema_version: int | None = None) -> RowsDigest:
        """Count and order-independent checksum over (key, values) of the live rows: a full scan."""
        return sum(map(digest_rows, self.scan(schema_version=schema_version)), RowsDigest())

    def stats(self) -> RegionStats:
        content = self._content
        with content.lock:
            memtables, log = content.memtables, self._log
            return stats_of(
                self._manifest, memtables, log.size_bytes, content.version, content.sequence
            )

    @contextmanager
    def _view(self, schema_version: int | None = None) -> Iterator[View]:
        """A successor may merge the files away meanwhile: then it is its fence that is told."""
        self._serving.check()
        with self._stale_first(), self._content.view(schema_version) as view:
            yield view
