"""How rows are reached: through frontends, or straight at the nodes. What both have in common."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa

from base.errors import MetaError
from base.rows.convert import Rows, to_batch
from base.rows.layout import Column, KeyLike, Layout
from base.rows.named import key_batch, named_batch
from base.rows.outcome import RegionOutcome, WriteResult
from base.rows.split import Part
from base.wire.batches import ChecksumResult
from metasrv.sdk.binding import Bound

Op = Literal["insert", "upsert", "update", "delete"]
Ends = tuple[KeyLike | None, KeyLike | None]
"""Of a scan: inclusive, and exclusive; keys, or the first values of one."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement writes, whatever the layout."""

    op: Op
    rows: Rows = ()
    keys: Sequence[KeyLike] = ()
    """Of a delete."""

    def stored(self, layout: Layout) -> pa.RecordBatch:
        """With all columns, as regions know them; of a delete those of the key. Raises Refused."""
        if self.op == "delete":
            keys = key_batch(layout, self.keys)
            return keys.rename_columns([column.field for column in layout.key])
        return to_batch(layout, self.rows)

    def named(self, layout: Layout) -> pa.RecordBatch:
        """With the columns that are named, as users know them. Raises Refused."""
        if self.op == "delete":
            return key_batch(layout, self.keys)
        return named_batch(layout, self.rows, fills=self.op != "update")


class Way(Protocol):
    """*until* is in seconds of the loop's clock. What cannot be done raises the five errors."""

    async def write(self, wanted: Wanted, key: str, until: float) -> WriteResult:
        """Done once, however often the same *key* comes within ten minutes."""
        ...

    async def get(self, keys: Sequence[KeyLike], until: float) -> list[dict[str, object]]:
        """The rows that are there."""
        ...

    def pages(
        self, bound: Bound, number: int, columns: Sequence[Column], ends: Ends
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Of one region. Each answer has a deadline of its own. Raises Conflict
        `schema-version-stale` once the table has those columns no more."""
        ...

    async def checksum(self, bound: Bound, number: int, until: float) -> ChecksumResult: ...

    def parts(self, layout: Layout, rows: pa.RecordBatch, op: Op, first: int) -> list[Part]:
        """A batch of a load by region; each part has `_key`, and the place of each row in the whole
        load, where the batch begins at *first*. Raises Refused."""
        ...

    async def put(self, bound: Bound, part: Part, op: Op, key: str) -> RegionOutcome:
        """One of those, written. Never raises one of the five. An error points to the place of
        the row in the load."""
        ...


def with_keys_shown(error: MetaError, layout: Layout) -> MetaError:
    """Keys by column name where a region has named encoded ones."""
    keys = error.facts.get("keys")
    if not isinstance(keys, list):
        return error
    shown = [layout.key_shown(bytes.fromhex(key)) for key in keys]
    return type(error)(error.code, **{**error.facts, "keys": shown})
