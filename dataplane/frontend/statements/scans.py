"""Reads that go on: where each is, and how its next page is come by.

A scan is a transaction: what it is bound to stays pinned until its last page, or until it is too
old. Its place travels in the page token, so a page can be asked for again.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self

import pyarrow as pa

from dataplane.frontend.catalog.schema import Schema, StoredIndex
from dataplane.frontend.lease.transactions import Transaction
from dataplane.frontend.statements.entry_merge import PAGE_BYTES_MAX, EntryMerge, PageShare
from dataplane.frontend.statements.regions import CallBudget, RegionClient, RegionPage
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.rows.nodes import has_more, key_behind
from metasrv_base.wire.node.batches import SCAN_ROWS_MAX

REGIONS_AT_ONCE = 16
STREAM_ROWS = SCAN_ROWS_MAX
STREAM_BYTES = 4 << 20
"""Bytes of a page of an Arrow stream, of which a frontend has two in memory: large enough that the
fixed cost of a page does not matter."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position at which a page begins."""

    number: int = 0
    """The number of the region; 0 for an index read, which asks all of them."""
    key: bytes = b""
    """Inclusive."""


@dataclass(frozen=True, slots=True)
class Found:
    """One page."""

    rows: pa.RecordBatch | pa.Table
    """The rows, with the names that users know."""
    following: Place | None
    """The next place; None if it is the last."""


class Scan(Protocol):
    """A read of rows, under one schema."""

    @property
    def schema(self) -> Schema: ...

    @property
    def start(self) -> Place: ...

    @property
    def columns(self) -> Sequence[LayoutColumn]: ...

    def under(self, schema: Schema) -> Self:
        """The same under a newer schema. Raises Conflict if it cannot be."""
        ...

    async def page(
        self, regions: RegionClient, cursor: Place, limit: int, call: CallBudget
    ) -> Found: ...


@dataclass(frozen=True, slots=True)
class Within:
    """A range of rows, by their encoded keys."""

    first: bytes = b""
    """Inclusive."""
    end: bytes | None = None
    """Exclusive; None: to the last."""
    region: int | None = None
    """The number of the only region; None: all of them."""


@dataclass(frozen=True, slots=True)
class RowScan:
    """Rows, region by region, by key within each."""

    schema: Schema
    columns: tuple[LayoutColumn, ...]
    within: Within = Within()
    page_bytes_max: int | None = None
    """The most bytes of a page; None for PAGE_BYTES_MAX."""
    values_only: bool = False
    """Pages may exceed their limit of rows: regions answer whole row groups."""

    @property
    def start(self) -> Place:
        return Place(self.within.region or 0, self.within.first)

    def under(self, schema: Schema) -> "RowScan":
        _must_have(schema, self.columns)
        return replace(self, schema=schema)

    async def page(
        self, regions: RegionClient, cursor: Place, limit: int, call: CallBudget
    ) -> Found:
        ids = tuple(column.id for column in self.columns)
        parts: list[pa.Table] = []
        rows = taken_bytes = 0
        bytes_max = self.page_bytes_max or PAGE_BYTES_MAX
        only = self.within.region
        end = self.schema.layout.router.regions if only is None else only + 1
        while cursor.number < end and rows < limit:
            rows_max, room = min(limit - rows, SCAN_ROWS_MAX), bytes_max - taken_bytes
            request = RegionPage(
                cursor.key,
                self.within.end,
                ids,
                rows_max,
                bytes_max=room,
                values_only=self.values_only,
            )
            part = await regions.scan(self.schema, cursor.number, request, call)
            parts.append(part)
            rows, taken_bytes = rows + part.num_rows, taken_bytes + part.nbytes
            is_last = not has_more(part) and (self.values_only or part.num_rows < rows_max)
            following = Place(cursor.number + 1, self.within.first)
            cursor = following if is_last else Place(cursor.number, key_behind(part))
            if taken_bytes >= bytes_max:
                break
        rows = (shown_in_parts if self.values_only else shown)(self.columns, parts)
        return Found(rows, None if cursor.number >= end else cursor)


@dataclass(frozen=True, slots=True)
class IndexScan:
    """Rows in the order of an index, from all regions."""

    schema: Schema
    index: StoredIndex
    end: bytes | None
    """The end of the entries, exclusive; None: to the last."""
    first: bytes = b""

    @property
    def start(self) -> Place:
        return Place(0, self.first)

    @property
    def columns(self) -> tuple[LayoutColumn, ...]:
        return self.schema.layout.columns

    def under(self, schema: Schema) -> "IndexScan":
        try:
            index = schema.index(self.index.name)
        except NotFound:
            raise _stale(self.schema, schema) from None
        if index.id != self.index.id or schema.layout.columns != self.columns:
            raise _stale(self.schema, schema)
        return replace(self, schema=schema, index=index)

    async def page(
        self, regions: RegionClient, cursor: Place, limit: int, call: CallBudget
    ) -> Found:
        """The next rows of all regions, in the order of their entries."""
        merge = EntryMerge(range(self.schema.layout.router.regions), cursor.key, limit)
        ids = tuple(column.id for column in self.columns)

        async def refill(share: PageShare) -> None:
            request = RegionPage(
                share.key, self.end, ids, share.rows, self.index.id, share.bytes_max
            )
            part = await regions.scan(self.schema, share.number, request, call)
            merge.filled(share, part, is_last=part.num_rows < share.rows and not has_more(part))

        while shares := merge.wanted():
            await fan_out([partial(refill, share) for share in shares], at_once=REGIONS_AT_ONCE)
            merge.take()
        key = merge.following
        return Found(shown(self.columns, merge.taken), None if key is None else Place(0, key))


@dataclass(frozen=True, slots=True)
class OpenScan:
    scan: Scan
    transaction: Transaction


class OpenScans:
    """Open scans by the id of their transactions, which bound their number."""

    def __init__(self) -> None:
        self._open: dict[str, OpenScan] = {}

    def __iter__(self) -> Iterator[OpenScan]:
        return iter(list(self._open.values()))

    def keep(self, opened: OpenScan) -> None:
        self._open[opened.transaction.id] = opened

    def forget(self, transaction: Transaction) -> None:
        self._open.pop(transaction.id, None)

    def find(self, id: str) -> OpenScan:
        """Raises Refused `page-token-expired`."""
        if id not in self._open:
            raise Refused("page-token-expired")
        return self._open[id]


def token_of(transaction: Transaction, cursor: Place) -> str:
    return _token(transaction.id, cursor)


def token_apart(cursor: Place) -> str:
    """Returns the token of a page that is a transaction of its own."""
    return _token("", cursor)


def _token(id: str, cursor: Place) -> str:
    data = json.dumps([id, cursor.number, cursor.key.hex()]).encode()
    return base64.urlsafe_b64encode(data).decode()


def read_token(token: str) -> tuple[str, Place]:
    """The id of a transaction, or nothing, and a place. Raises Refused `bad-page-token`."""
    try:
        id, number, key = json.loads(base64.b64decode(token, b"-_", validate=True))
        if isinstance(id, str) and type(number) is int and number >= 0:
            return id, Place(number, bytes.fromhex(key))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        pass
    raise Refused("bad-page-token")


def shown(columns: Sequence[LayoutColumn], parts: Sequence[pa.Table]) -> pa.RecordBatch:
    """Joins the answers of regions to one batch, with the names that users know."""
    arrays = [_whole(column, parts) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=Layout.arrow_of(columns))


def shown_in_parts(columns: Sequence[LayoutColumn], parts: Sequence[pa.Table]) -> pa.Table:
    """Joins the answers of regions as `shown` does, but keeps their chunks: nothing is copied
    together."""
    schema = Layout.arrow_of(columns)
    tables = []
    for part in parts:
        values = [(part.column(column.field), column.type.arrow) for column in columns]
        arrays = [array if array.type == kind else array.cast(kind) for array, kind in values]
        tables.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _whole(column: LayoutColumn, parts: Sequence[pa.Table]) -> pa.Array:
    """Values of one column in its exact type, copied only where there is more than one part."""
    arrow_type = column.type.arrow
    chunks: list[pa.Array] = []
    for part in parts:
        values = part.column(column.field)
        chunks += (values if values.type == arrow_type else values.cast(arrow_type)).chunks
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], arrow_type)


def _must_have(schema: Schema, columns: Sequence[LayoutColumn]) -> None:
    available = {(column.id, column.name, column.type) for column in schema.layout.columns}
    if not {(column.id, column.name, column.type) for column in columns} <= available:
        raise Conflict("schema-version-stale", found="that of the scan", current=schema.version)


def _stale(old: Schema, new: Schema) -> Conflict:
    return Conflict("schema-version-stale", found=old.version, current=new.version)
