"""Chooses the versions of a key that survive a rewrite (docs/protocols.md P5, row versions)."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import DELETE, KEY, OP, VERSION


class KeptVersions:
    """Keeps the rows that a rewrite must keep; they come by key, newest first, in any number of
    tables.

    Kept are the newest of all, the newest at or below each open mark, and every tombstone above a
    mark. A newest tombstone is kept like any row: files that are not part of the rewrite may hold
    its key. A version that comes twice (from the log and from a file) is kept once.
    """

    def __init__(self, marks: Iterable[int]) -> None:
        self._marks = np.array(sorted(set(marks)), dtype=np.int64)
        self._last_key: bytes | None = None
        self._last_version = -1

    def of(self, table: pa.Table) -> pa.Table:
        """The rows of `table` to keep; it goes on where the table before it ended."""
        if table.num_rows == 0:
            return table
        keys = table.column(KEY).combine_chunks()
        versions = table.column(VERSION).to_numpy()
        before = np.concatenate(([self._last_version], versions[:-1]))
        same_key = np.empty(table.num_rows, dtype=bool)
        same_key[0] = keys[0].as_py() == self._last_key
        same_key[1:] = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        # Between two marks only the newest counts: a span is how many marks lie below a version.
        span = np.searchsorted(self._marks, versions, side="left")
        same_span = span == np.searchsorted(self._marks, before, side="left")
        is_wanted = (table.column(OP).to_numpy() == DELETE) & (span > 0) & (versions != before)
        superseded = same_key & same_span & ~is_wanted
        self._last_key, self._last_version = keys[-1].as_py(), int(versions[-1])
        return table.filter(pa.array(~superseded))
