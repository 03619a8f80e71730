"""The rows of tables as routes: parse, call the service, shape the answer."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ValidationError

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.http.answers import (
    Alive,
    MediaType,
    VersionBody,
    page_answer,
    wanted_form,
)
from dataplane.frontend.http.arrow_in import ArrowIn
from dataplane.frontend.http.page_stream import PagesAfter, PageStream
from dataplane.frontend.lease.holder import VERSION
from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.parameters import INDEX, KEY, LAG, NONE, OP, PAGE, REGION, SCAN
from dataplane.frontend.statements.query import (
    LIMIT,
    Asked,
    is_stateless,
    key_of,
    keys_of,
    limit_of,
    max_lag_of,
    range_of,
    read_query,
    region_of,
    rows_asked,
)
from dataplane.frontend.statements.reads import PageOf
from dataplane.frontend.statements.scans import (
    STREAM_BYTES,
    STREAM_ROWS,
    IndexScan,
    RowScan,
    Scan,
    read_token,
)
from dataplane.frontend.statements.write_stream import WriteStream
from dataplane.frontend.statements.writes import StatementTimes, WriteOutcome
from metasrv_base.errors import NotFound, Refused, Unavailable
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.statement_ids import id_of_key
from metasrv_base.schema.values import Value
from metasrv_base.wire.frontend.rows import (
    MIN_SCHEMA_VERSION,
    ROWS_MAX,
    SENT_MS,
    ChecksumAnswer,
    KeysRequest,
    RegionDone,
    RowsAnswer,
    RowsRequest,
    WriteAnswer,
)
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.http.asgi import read_body
from metasrv_base.wire.http.client import ANSWER_WITHIN_MS
from metasrv_base.wire.problem.problems import field_errors
from serving.json_body import media_type

M = TypeVar("M", bound=BaseModel)
KEY_CHARS_MAX = 255
_ID = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)

BY_NAME = "/v1/tables/{catalog}/{schema}/{table}"
BY_ID = "/v1/tables/{table_id}"
"""However it is called by now; gone, if it was dropped and another has its name."""

rows = APIRouter(tags=["rows"])
admin = APIRouter(tags=["admin"])


def service_of(request: Request) -> FrontendService:
    """Called by the routes: what FastAPI is to inject it works out anew at each request."""
    service = request.app.state.service
    assert isinstance(service, FrontendService)
    return service


async def _asked(request: Request) -> tuple[FrontendService, Name]:
    """And the table in the path, as new as the client has seen it. Raises NotFound, Unavailable."""
    service, name = service_of(request), _named(request)
    at_least = request.headers.get(MIN_SCHEMA_VERSION)
    if at_least is not None:
        if not _ID.fullmatch(at_least):
            raise Refused("invalid-request", found=at_least[:64], expected=MIN_SCHEMA_VERSION)
        await service.statements.catalog.catch_up(name, int(at_least))
    return service, name


def _named(request: Request) -> Name:
    params = request.path_params
    if "table_id" not in params:
        return params["catalog"], params["schema"], params["table"]
    if not _ID.fullmatch(params["table_id"]):
        raise NotFound("table-not-found", name=params["table_id"][:64])
    return int(params["table_id"])


@rows.post("/rows", response_model=WriteAnswer)
async def write_rows(request: Request) -> Response:
    """Insert, upsert, update or delete rows: JSON with the `op` in it, or an Arrow IPC stream with
    `?op=`, which is applied batch by batch as it arrives."""
    statement_id, times = _statement_id(request), times_of(request)
    service, name = await _asked(request)
    query = request.scope["query_string"]
    if media_type(request.scope) == MediaType.ARROW:
        op = _op(read_query(query, OP).get("op", [""])[0])
        stream = WriteStream(service.writes, op, statement_id, times)
        return _written(await stream.run(name, partial(_batches, request)))
    read_query(query, NONE)
    body = await json_body(request, RowsRequest)
    op, written = Op(body.op), service.writes.rows
    return _written(await written(name, op, body.rows, statement_id, times))


@rows.get("/rows", response_model=RowsAnswer)
async def get_rows(request: Request) -> Response:
    """One row by `key`; or the rows of `index` that have `eq`, or are from `from` up to `to`."""
    service, name = await _asked(request)
    form = _form(request)
    query = request.scope["query_string"]
    params = read_query(query, KEY | INDEX | PAGE)
    if "page_token" in params and not is_stateless(params):
        return page_answer(await _resumed(service, read_query(query, PAGE)), form, service.pages)
    max_lag_ms = max_lag_of(params) if "max_lag" in params else None
    if "key" in params:
        read_query(query, KEY)

        def key(layout: Layout) -> Sequence[Value]:
            return key_of(layout.key, params["key"])

        row = await service.reads.by_key(name, key, max_lag_ms)
        return page_answer(row, form, service.pages)
    if "index" not in params:
        raise Refused("invalid-request", expected="key, or index, in the query")
    limit = limit_of(params) or LIMIT

    def entries(schema: Schema) -> Scan:
        index = schema.index(params["index"][0])
        range = range_of(index, params)
        return IndexScan(schema, index, range.end, range.first)

    if is_stateless(params):
        return page_answer(await _page_apart(service, name, entries, params), form, service.pages)
    opened = await service.scans.begin(name, entries, max_lag_ms)
    return page_answer(
        (await service.scans.page(opened, opened.scan.start, limit))[0], form, service.pages
    )


@rows.post("/rows/get", response_model=RowsAnswer)
async def get_rows_by_keys(request: Request) -> Response:
    """Rows by primary key, as many as a page has; those that are not there are left out."""
    service, name = await _asked(request)
    form = _form(request)
    max_lag_ms = max_lag_of(read_query(request.scope["query_string"], LAG))
    body = await json_body(request, KeysRequest)
    keys = body.keys
    page = await service.reads.by_keys(
        name, lambda layout: keys_of(layout.key, keys), len(keys), max_lag_ms
    )
    return page_answer(page, form, service.pages)


@rows.get("/scan", response_model=RowsAnswer)
async def scan_rows(request: Request) -> Response:
    """All rows, or some `columns` of them: JSON in pages; NDJSON and Arrow as one stream."""
    service, name = await _asked(request)
    form = _form(request)
    query = request.scope["query_string"]
    params = read_query(query, SCAN | PAGE)
    limit, max_lag_ms = limit_of(params), max_lag_of(params)

    def some(schema: Schema) -> RowScan:
        return rows_asked(schema, params)

    if is_stateless(params):
        return page_answer(await _page_apart(service, name, some, params), form, service.pages)
    if "page_token" in params:
        return page_answer(await _resumed(service, read_query(query, PAGE)), form, service.pages)
    if form is MediaType.JSON or limit is not None:
        opened = await service.scans.begin(name, some, max_lag_ms)
        page, _ = await service.scans.page(opened, opened.scan.start, limit or LIMIT)
        return page_answer(page, form, service.pages)
    rows_max = STREAM_ROWS if form is MediaType.ARROW else ROWS_MAX

    def whole(schema: Schema) -> RowScan:
        return replace(some(schema), page_bytes_max=STREAM_BYTES, values_only=True)

    opened = await service.scans.begin(name, whole, max_lag_ms)
    first, following = await service.scans.page(opened, opened.scan.start, rows_max)
    rest = PagesAfter(service.scans, opened, following, rows_max)
    try:
        return PageStream(first, rest, form, service.streams)
    except Unavailable:
        await rest.aclose()
        raise


@rows.get("/checksum", response_model=ChecksumAnswer)
async def checksum(request: Request) -> Response:
    """All rows, or those of one `region`, counted and summed up where they are."""
    service, name = await _asked(request)
    params = read_query(request.scope["query_string"], REGION)
    answer = await service.reads.checksum(name, lambda layout: region_of(layout, params))
    return _json(answer)


@admin.get("/livez")
async def livez(request: Request) -> Alive:
    """The process answers; not once its lease has ended."""
    service_of(request).check_alive()
    return Alive()


@admin.get("/readyz")
async def readyz(request: Request) -> Alive:
    """Whether the frontend holds a schema lease and has read the catalog."""
    service_of(request).statements.holder.check()
    return Alive()


@admin.get("/version")
async def version(request: Request) -> VersionBody:
    """The version and id of this process, and its cluster."""
    service = service_of(request)
    me = service.statements.holder
    return VersionBody(
        version=VERSION,
        frontend_id=me.holder_id,
        incarnation=None if me.now is None else me.now.incarnation,
        cluster_id=me.cluster_id,
        catalog_version=service.statements.catalog.version,
    )


@admin.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters in the Prometheus text format."""
    return Response(service_of(request).exposition(), media_type="text/plain; version=0.0.4")


async def _resumed(service: FrontendService, params: Asked) -> PageOf:
    opened, cursor = service.scans.resume(params["page_token"][0])
    return (await service.scans.page(opened, cursor, limit_of(params) or LIMIT))[0]


async def _page_apart(
    service: FrontendService, name: Name, make: Callable[[Schema], Scan], params: Asked
) -> PageOf:
    cursor = read_token(params["page_token"][0])[1] if "page_token" in params else None
    limit, max_lag_ms = limit_of(params) or LIMIT, max_lag_of(params)
    return await service.reads.page(name, make, cursor, limit, max_lag_ms)


def _batches(request: Request, left_s: Callable[[], float]) -> AsyncIterator[pa.RecordBatch]:
    return ArrowIn(request.receive, left_s).batches()


async def json_body(request: Request, model: type[M]) -> M:
    media = media_type(request.scope)
    body = await read_body(request.receive, strict_json.BODY_BYTES_MAX)
    if body and media != MediaType.JSON:
        raise Refused(
            "unsupported-media-type", found=media, expected=f"{MediaType.JSON} or {MediaType.ARROW}"
        )
    value = strict_json.parse(body)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Refused("invalid-request", errors=field_errors(error.errors(), value)) from error


def _form(request: Request) -> MediaType:
    return wanted_form(request.headers.get("accept", ""))


def _op(text: str) -> Op:
    if text in set(Op):
        return Op(text)
    raise Refused("invalid-request", found=text[:64], expected="op: " + ", ".join(Op))


def _statement_id(request: Request) -> str:
    """The same `Idempotency-Key` again is answered by what it did the first time, while regions
    remember it (docs/decisions/0114): a region applies a statement once."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return uuid4().hex
    if not 1 <= len(header) <= KEY_CHARS_MAX or not header.isprintable():
        raise Refused("bad-idempotency-key")
    return id_of_key(header)


def times_of(request: Request) -> StatementTimes:
    """The times in the headers; to be called before any wait."""
    return StatementTimes(_sent_ms(request), _answer_by_ms(request))


def _sent_ms(request: Request) -> int:
    """The time at which the first sender made the statement. For a client that does not say it, the
    time of this call, before any wait."""
    header = request.headers.get(SENT_MS)
    if header is None:
        return service_of(request).statements.clock.wall_ms()
    if not _ID.fullmatch(header):
        raise Refused("invalid-request", found=header[:64], expected=f"{SENT_MS}: milliseconds")
    return int(header)


def _answer_by_ms(request: Request) -> int | None:
    header = request.headers.get(ANSWER_WITHIN_MS)
    if header is None:
        return None
    if not _ID.fullmatch(header):
        expected = f"{ANSWER_WITHIN_MS}: milliseconds"
        raise Refused("invalid-request", found=header[:64], expected=expected)
    return service_of(request).statements.clock.mono_ms() + int(header)


def _written(done: WriteOutcome) -> Response:
    regions = tuple(
        RegionDone(
            region_id=part.region_id, rows=part.rows, version=part.version, repeated=part.repeated
        )
        for part in done.regions
    )
    return _json(WriteAnswer(rows=done.rows, schema_version=done.schema_version, regions=regions))


def _json(answer: BaseModel) -> Response:
    """Nothing is left to check, or to work out, of what we made ourselves."""
    return Response(answer.model_dump_json(), media_type=MediaType.JSON)
