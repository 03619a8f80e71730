"""Tables cut and gathered into parts that are bounded by rows and by bytes. Copies no row."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PartSize:
    """The most rows of a part, and the most bytes as Arrow holds them; a part has one row at
    least."""

    rows: int
    bytes: int


def cut(table: pa.Table, size: PartSize) -> Iterator[pa.Table]:
    """Every row of `table`, in order."""
    while table.num_rows:
        rows = max(_fitting(table, size), 1)
        yield table.slice(0, rows)
        table = table.slice(rows)


def gathered(tables: Iterable[pa.Table], size: PartSize) -> Iterator[pa.Table]:
    """Every row of `tables`, in order, in parts as large as may be."""
    waiting: list[pa.Table] = []
    room = size
    for table in tables:
        rest = table
        while rest.num_rows:
            rows = _fitting(rest, room)
            if rows == 0 and waiting:
                yield pa.concat_tables(waiting)
                waiting, room = [], size
                continue
            head = rest.slice(0, max(rows, 1))
            waiting.append(head)
            room = PartSize(room.rows - head.num_rows, room.bytes - head.nbytes)
            rest = rest.slice(head.num_rows)
    if waiting:
        yield pa.concat_tables(waiting)


def _fitting(table: pa.Table, size: PartSize) -> int:
    """The number of first rows that fit; perhaps 0."""
    most: int = min(table.num_rows, size.rows)

    if table.slice(0, most).nbytes <= size.bytes:
        return most
    counts = range(1, most + 1)
    fitting: int = bisect_right(counts, size.bytes, key=lambda rows: table.slice(0, rows).nbytes)
    return fitting
