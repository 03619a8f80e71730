"""The rows of a table for plain code: the asynchronous table, called through a private loop."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Unpack

import pyarrow as pa

from metasrv.sdk.portal import Portal
from metasrv.sdk.rows.loader import LoadOp, LoadResult, OnRows, Source
from metasrv.sdk.rows.rows import FIND_ROWS, StatementOptions, TableChecksum
from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.rows.convert import Rows
from metasrv_base.rows.layout import KeyLike
from metasrv_base.rows.outcome import WriteResult


class Table:
    """What each method does is said in metasrv/sdk/rows/rows.py and table.py."""

    def __init__(self, portal: Portal, table: AsyncTable) -> None:
        self._portal = portal
        self._table = table

    @property
    def name(self) -> str:
        return self._table.name

    def schema(self) -> pa.Schema:
        return self._portal.call(self._table.schema())

    def regions(self) -> list[int]:
        return self._portal.call(self._table.regions())

    def insert(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        return self._portal.call(self._table.insert(rows, **options))

    def upsert(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        return self._portal.call(self._table.upsert(rows, **options))

    def update(self, rows: Rows, **options: Unpack[StatementOptions]) -> WriteResult:
        return self._portal.call(self._table.update(rows, **options))

    def delete(self, keys: Iterable[KeyLike], **options: Unpack[StatementOptions]) -> WriteResult:
        return self._portal.call(self._table.delete(keys, **options))

    def get(self, key: KeyLike, **options: Unpack[StatementOptions]) -> dict[str, object] | None:
        return self._portal.call(self._table.get(key, **options))

    def get_many(
        self, keys: Iterable[KeyLike], **options: Unpack[StatementOptions]
    ) -> list[dict[str, object]]:
        return self._portal.call(self._table.get_many(keys, **options))

    def find(
        self,
        index: str,
        eq: object = None,
        from_: object = None,
        to: object = None,
        limit: int = FIND_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        return self._portal.each(self._table.find(index, eq, from_, to, limit))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        from_: KeyLike | None = None,
        to: KeyLike | None = None,
        regions: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        return self._portal.each(self._table.scan(columns, from_, to, regions))

    def scan_regions(
        self, regions: Sequence[int], columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        return self._portal.each(self._table.scan_regions(regions, columns))

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        return self._portal.call(self._table.to_arrow(columns))

    def count(self, **options: Unpack[StatementOptions]) -> int:
        return self._portal.call(self._table.count(**options))

    def checksum(self, **options: Unpack[StatementOptions]) -> TableChecksum:
        return self._portal.call(self._table.checksum(**options))

    def load(
        self,
        source: Source,
        batch_rows: int = 5000,
        on_progress: OnRows | None = None,
        op: LoadOp = "upsert",
    ) -> LoadResult:
        return self._portal.call(self._table.load(source, batch_rows, on_progress, op))
