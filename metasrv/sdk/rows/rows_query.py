"""The rows of a statement, before they are encoded for one reading of the table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from metasrv_base.rows.convert import Rows
from metasrv_base.rows.layout import KeyLike, Layout
from metasrv_base.rows.named import key_batch, named_batch

Op = Literal["insert", "upsert", "update", "delete"]
Ends = tuple[KeyLike | None, KeyLike | None]
"""The ends of a scan, the first inclusive, the second exclusive: keys, or the first values of
one."""


@dataclass(frozen=True, slots=True)
class RowsQuery:
    op: Op
    rows: Rows = ()
    keys: Sequence[KeyLike] = ()
    """The keys of a delete."""

    def named(self, layout: Layout) -> pa.RecordBatch:
        """The rows with the columns that are named, as users know them. Raises Refused."""
        if self.op == "delete":
            return key_batch(layout, self.keys)
        return named_batch(layout, self.rows, fills=self.op != "update")
