"""Families: the table's rows, and one for the entries of each index, in one region.

A batch says with each row where it belongs, by `_family`, a nullable int32; where the column is
missing or null, to the table's rows. An entry's only value is `_row`, the key of its row. In the
log and in memory the families stand apart. In logs of format 1 each was a slice of its batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import KEY, OP, ColumnDef
from dataplane.region.format.row_keys import RowKeys
from metasrv_base.errors import Corrupt

ROWS = 0
FAMILY = "_family"
ROW = "_row"
ENTRY_COLUMNS = (ColumnDef(id=0, type="binary", nullable=False),)
"""The columns of every index: one, named `_row`."""


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """Rows of one family: of one batch as `columns.log_schema` of the family's columns, or of a
    logged group with versions, as `columns.file_schema`."""

    family: int
    rows: pa.RecordBatch
    keys: RowKeys


def columns_in(family: int, columns: Sequence[ColumnDef]) -> Sequence[ColumnDef]:
    """`columns` are the table's."""
    return columns if family == ROWS else ENTRY_COLUMNS


def families_of(batch: pa.RecordBatch) -> pa.Array:
    """The family of each row of a batch, of a client or of a log of format 1."""
    if FAMILY not in batch.schema.names:
        return pa.repeat(pa.scalar(ROWS, pa.int32()), batch.num_rows)
    return pc.fill_null(batch.column(FAMILY), ROWS)


def sliced(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A batch whose families rise, by family: each slice shares its memory. Raises Corrupt if they
    do not."""
    if FAMILY not in batch.schema.names:
        yield ROWS, batch
        return
    families = families_of(batch).to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(families, prepend=families[:1] - 1)).tolist()
    family_ids = [int(families[start]) for start in starts]
    if family_ids != sorted(set(family_ids)):
        raise Corrupt(families=family_ids, reason="the families of a logged batch do not rise")
    for family, start, end in zip(family_ids, starts, [*starts[1:], len(families)], strict=True):
        names = [name for name in batch.schema.names if _is_of(name, family)]
        yield family, batch.slice(start, end - start).select(names)


def _is_of(name: str, family: int) -> bool:
    return name in (KEY, OP) or ((name == ROW) == (family != ROWS) and name != FAMILY)
