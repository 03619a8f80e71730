"""Cuts sorted rows into files, so that no footer outgrows its bound.

Parquet's footer has an entry for each column of each row group, which writers and readers hold in
memory as a whole. A file ends where its footer is full and a key begins: no two have a key in
common.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from dataplane.region.files.file_writer import GROUP_COLUMN_BYTES, ROW_GROUP
from dataplane.region.format.columns import KEY, SYSTEM
from dataplane.region.format.parts import gathered

FOOTER_BYTES_MAX = 8 << 20
"""The most memory for the footer of a file that a merge writes: 1.3 million rows of four columns,
44 MB of rows of 50."""


def groups_max(columns: int) -> int:
    """The most row groups of such a file; *columns*: those of the table."""
    return max(FOOTER_BYTES_MAX // ((columns + len(SYSTEM)) * GROUP_COLUMN_BYTES), 1)


class FileSplitter:
    """Iterates over files to be written, each an iterator of row groups that is to be exhausted
    before the next. Holds one row group that it has not given yet."""

    def __init__(self, rows: Iterable[pa.Table], groups_max: int) -> None:
        self._groups = gathered(rows, ROW_GROUP)
        self._groups_max = groups_max
        self._waiting = next(self._groups, None)

    def __iter__(self) -> Iterator[Iterator[pa.Table]]:
        while self._waiting is not None:
            yield self._file()

    def _file(self) -> Iterator[pa.Table]:
        count, last = 0, None
        while (group := self._waiting) is not None:
            if count >= self._groups_max and group.column(KEY)[0] != last:
                return
            count, last = count + 1, group.column(KEY)[group.num_rows - 1]
            yield group
            self._waiting = next(self._groups, None)
