"""Rows through frontends: they know the newest schema, and what its indexes ask for."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import urlencode

import pyarrow as pa

from metasrv.sdk.rows.attempts import Copies
from metasrv.sdk.rows.binding import Binding, Bound
from metasrv.sdk.rows.frontends import Frontends
from metasrv.sdk.rows.rows_query import Ends, Op, RowsQuery
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable, Unknown
from metasrv_base.ids import TableId, region_id
from metasrv_base.rows.arrow_parts import END_OF_STREAM
from metasrv_base.rows.layout import KeyLike, Layout, LayoutColumn
from metasrv_base.rows.named import dicts_of, named_batch
from metasrv_base.rows.nodes import ARROW
from metasrv_base.rows.outcome import RegionOutcome, WriteResult, outcome_of
from metasrv_base.rows.places import PLACE, numbered, placed
from metasrv_base.rows.retry import SENT_MS_MAX
from metasrv_base.rows.split import RegionPart, by_region
from metasrv_base.rows.statement_ids import StatementKey
from metasrv_base.schema.keybatch import encode_batch
from metasrv_base.schema.values import from_json, from_python, to_json
from metasrv_base.wire.frontend.rows import (
    MIN_SCHEMA_VERSION,
    ROWS_MAX,
    SCHEMA_VERSION,
    SENT_MS,
    ChecksumAnswer,
    KeysRequest,
    WriteAnswer,
)
from metasrv_base.wire.http.client import HttpAnswer
from metasrv_base.wire.node.batches import ChecksumResult

PAGE_S = SENT_MS_MAX / 1000
"""The deadline of one page, or one batch of a load, in s."""
Query = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Keyed:
    """The facts that all copies of one statement share."""

    key: StatementKey
    until: float
    """Seconds of the loop's clock."""
    copies: Copies


@dataclass(frozen=True, slots=True)
class Through:
    """*until* is in seconds of the loop's clock. What cannot be done raises the five errors."""

    binding: Binding
    frontends: Frontends

    async def write(self, query: RowsQuery, key: StatementKey, until: float) -> WriteResult:
        """Writes once, however often the same *key* comes."""
        bound, copies = await self.binding.get(), Copies()
        with copies.settled():
            while True:
                try:
                    return await self._write(bound, query, _Keyed(key, until, copies))
                except (Refused, Conflict) as error:
                    # Perhaps the table is another by now: its rows are made again for that.
                    copies.refused(error)
                    if isinstance(error, Conflict) and error.code != "schema-version-stale":
                        raise
                    now = await self.binding.read_again(bound)
                    if now is bound or now.body.version == bound.body.version:
                        raise
                    bound = now

    async def get(
        self, keys: Sequence[KeyLike], until: float, max_lag: int | None = None
    ) -> list[dict[str, object]]:
        """The rows that are there. *max_lag*: the age in ms that they may have."""
        if not keys:
            return []
        bound = await self.binding.get()
        layout = bound.layout
        json_keys = [
            [to_json(*pair) for pair in zip(layout.key_types, layout.key_values(key), strict=True)]
            for key in keys
        ]
        rows: list[dict[str, object]] = []
        for start in range(0, len(json_keys), ROWS_MAX):
            body = KeysRequest.model_validate({"keys": json_keys[start : start + ROWS_MAX]})
            path = _with_query(f"{_rows(layout)}/get", _lag(max_lag))
            answer = await self._read(bound, path, until, body)
            rows += dicts_of(_batch(answer))
        return rows

    async def pages(
        self,
        bound: Bound,
        number: int,
        columns: Sequence[LayoutColumn],
        ends: Ends,
        max_lag: int | None = None,
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Live rows of one region. Each answer has a deadline of its own; *max_lag*: the age in ms
        that its rows may have. Raises Conflict `schema-version-stale` once the table has those
        columns no more."""
        query: Query = [
            *_lag(max_lag),
            ("region", str(number)),
            ("column_ids", ",".join(str(column.id) for column in columns)),
        ]
        for name, end in zip(("from", "to"), ends, strict=True):
            if end is not None:
                values = zip(bound.layout.key, bound.layout.bound_values(end), strict=False)
                query += [
                    (name, json.dumps(to_json(column.type, value))) for column, value in values
                ]
        try:
            path = f"{_table(bound.layout)}/scan"
            async for page in self._apart(bound, path, query, ROWS_MAX):
                yield _as_known(columns, page)
        except Conflict:
            self.binding.doubt(bound)
            raise

    async def _apart(
        self, bound: Bound, path: str, query: Query, limit: int
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Pages that are each a transaction of its own, of any frontend; none is empty."""
        params = [("apart", "true"), ("limit", str(limit)), *query]
        token: Query = []
        while True:
            until = asyncio.get_running_loop().time() + PAGE_S
            answer = await self._read(bound, f"{path}?{urlencode([*params, *token])}", until)
            batch = _batch(answer)
            if batch.num_rows:
                yield batch
            following = answer.headers.get("x-next-page-token")
            if following is None:
                return
            token = [("page_token", following)]

    async def find(
        self,
        index: str,
        bounds: Mapping[str, Sequence[object]],
        limit: int,
        max_lag: int | None = None,
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Rows in the order of an index, as many as *limit*. *max_lag*: as of `pages`. Raises
        NotFound, Refused."""
        bound = await self.binding.get()
        if index not in {index_body.name for index_body in bound.body.indexes}:
            bound = await self.binding.read_again(bound)
        named = {index_body.name: index_body for index_body in bound.body.indexes}
        if index not in named:
            close = get_close_matches(index, named, n=1)
            raise NotFound(
                what="index", name=index, **({"did_you_mean": close[0]} if close else {})
            )
        columns = [bound.layout.named[name] for name in named[index].columns]
        query: Query = [("index", index), *_lag(max_lag)]
        for name, values in bounds.items():
            if len(values) > len(columns):
                raise Refused("invalid-request", found=len(values), expected=f"{name}: {index}")
            query += [(name, _text(*pair)) for pair in zip(columns, values, strict=False)]
        left = limit
        pages = self._apart(bound, _rows(bound.layout), query, min(limit, ROWS_MAX))
        async for page in pages:
            yield page.slice(0, left)
            left -= page.num_rows
            if left <= 0:
                return

    async def checksum(self, bound: Bound, number: int, until: float) -> ChecksumResult:
        path = f"{_table(bound.layout)}/checksum?region={number}"
        answer = await self._read(bound, path, until)
        (region,) = answer.body(ChecksumAnswer).regions
        return ChecksumResult(**region.model_dump())

    def parts(self, layout: Layout, rows: pa.RecordBatch, op: Op, first: int) -> list[RegionPart]:
        """Splits a batch of a load by region; each part has `_key`, and the place of each row in
        the whole load, where the batch begins at *first*. Raises Refused."""
        named = named_batch(layout, rows, fills=True)
        key = [named.column(column.name) for column in _key_of(layout, named)]
        routed = pa.RecordBatch.from_arrays(key, names=[column.field for column in layout.key])
        keyed = named.add_column(0, "_key", encode_batch(layout.key_types, key))
        return by_region(layout, routed, numbered(keyed, first))

    async def put(self, bound: Bound, part: RegionPart, op: Op, key: StatementKey) -> RegionOutcome:
        """Writes one part of a load. Never raises one of the five. An error points to the place of
        the row in the load."""
        keyed = _Keyed(key, asyncio.get_running_loop().time() + PAGE_S, Copies())
        id = str(region_id(TableId(bound.layout.table_id), part.number))
        try:
            await self._send(bound, part.rows.drop_columns(["_key", PLACE]), op, keyed)
        except MetaError as error:
            error_in_load = placed(error, part.rows.column(PLACE))
            return outcome_of(id, part.rows.num_rows, error_in_load, keyed.copies.perhaps)
        return RegionOutcome(id, "applied", part.rows.num_rows)

    # -- inside

    async def _write(self, bound: Bound, query: RowsQuery, keyed: "_Keyed") -> WriteResult:
        batch = await asyncio.to_thread(query.named, bound.layout)
        if not batch.num_rows:
            return WriteResult(0, ())
        done = await self._send(bound, batch, query.op, keyed)
        outcomes = tuple(
            RegionOutcome(region.region_id, "applied", region.rows, region.version, region.repeated)
            for region in done.regions
        )
        return WriteResult(done.rows, outcomes)

    async def _send(
        self, bound: Bound, batch: pa.RecordBatch, op: Op, keyed: "_Keyed"
    ) -> WriteAnswer:
        body = await asyncio.to_thread(_stream, batch)
        try:
            answer = await self.frontends.ask(
                "POST",
                f"{_rows(bound.layout)}?op={op}",
                keyed.until,
                keyed.copies,
                content=body,
                headers={"content-type": ARROW, **_named(keyed.key), **self._min(bound)},
            )
        except MetaError as error:
            raise _with_keys(error, bound.layout) from error
        done = answer.body(WriteAnswer)
        self.frontends.heard(bound.layout.table_id, done.schema_version)
        if done.schema_version > bound.layout.schema_version:
            self.binding.doubt(bound)  # its defaults may be others by now
        return done

    async def _read(
        self, bound: Bound, path: str, until: float, body: KeysRequest | None = None
    ) -> HttpAnswer:
        """A read changes nothing, so a lost answer is only a late one."""
        method = "GET" if body is None else "POST"
        headers = {"accept": ARROW, **self._min(bound)}
        try:
            answer = await self.frontends.ask(
                method, path, until, Copies(), json=body, headers=headers, repeatable=True
            )
        except Unknown as error:
            raise Unavailable("not-ready", **error.facts) from error
        except NotFound:
            await self.binding.read_again(bound)  # forgets a table that was dropped
            raise
        if (version := answer.headers.get(SCHEMA_VERSION)) is not None:
            self.frontends.heard(bound.layout.table_id, int(version))
        return answer

    def _min(self, bound: Bound) -> dict[str, str]:
        """Any frontend must know what this client has seen of the table, whoever showed it."""
        newest_version = self.frontends.newest(bound.layout.table_id)
        return {MIN_SCHEMA_VERSION: str(max(newest_version, bound.layout.schema_version))}


def _lag(max_lag: int | None) -> Query:
    return [] if max_lag is None else [("max_lag", str(max_lag))]


def _with_query(path: str, query: Query) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _named(key: StatementKey) -> dict[str, str]:
    return {"idempotency-key": key.text, SENT_MS: str(key.sent_ms)}


def _table(layout: Layout) -> str:
    return f"/v1/tables/{layout.table_id}"


def _rows(layout: Layout) -> str:
    return f"{_table(layout)}/rows"


def _stream(batch: pa.RecordBatch) -> bytes:
    """One plain batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _batch(answer: HttpAnswer) -> pa.RecordBatch:
    if not answer.content.endswith(END_OF_STREAM):
        raise Unavailable("not-ready", what=answer.url, reason="the answer was cut")
    with pa.ipc.open_stream(pa.py_buffer(answer.content)) as reader:
        (batch,) = reader
        typed_batch: pa.RecordBatch = batch
    return typed_batch


def _as_known(columns: Sequence[LayoutColumn], page: pa.RecordBatch) -> pa.RecordBatch:
    """Renames columns as in this read of the table. Raises Conflict where a type has changed."""
    schema = Layout.arrow_of(columns)
    if page.schema.types != schema.types:
        raise Conflict("schema-version-stale", found="the types of this reading")
    return pa.RecordBatch.from_arrays(page.columns, schema=schema)


def _key_of(layout: Layout, named: pa.RecordBatch) -> Sequence[LayoutColumn]:
    """Raises Refused where a column of the key is not among those that are named."""
    missing = [column.name for column in layout.key if column.name not in named.schema.names]
    if missing:
        raise Refused("invalid-request", pointer=f"/rows/{missing[0]}", expected="a value")
    return layout.key


def _text(column: LayoutColumn, value: object) -> str:
    """A value of an index in a query."""
    return json.dumps(
        None if value is None else to_json(column.type, from_python(column.type, value))
    )


def _with_keys(error: MetaError, layout: Layout) -> MetaError:
    """Keys as Python has them, where a frontend names some as JSON has them."""
    keys = error.facts.get("keys")
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        return error
    types = {column.name: column.type for column in layout.key}
    shown = [{name: from_json(types[name], key[name]) for name in types} for key in keys]
    return type(error)(error.code, **{**error.facts, "keys": shown})
