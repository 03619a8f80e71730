"""/v1/sql of a frontend: statements about rows."""

from uuid import uuid4

import orjson
from fastapi import APIRouter, Request, Response

from dataplane.frontend.http.answers import MediaType
from dataplane.frontend.http.api import json_body, service_of, times_of
from dataplane.frontend.sql.run import SqlKey, run
from metasrv_base.concurrency.reservations import HeldBytes
from metasrv_base.concurrency.run_in_thread import is_small, run_in_thread
from metasrv_base.errors import MetaError, Refused
from metasrv_base.wire.language.row_sql import RowSqlBody, RowSqlRequest
from serving.answers import problem_bytes
from serving.timed_stream import SMALL_BYTES, whole_answer

SQL = "/v1/sql"
KEY_CHARS_MAX = 255

sql = APIRouter(tags=["sql"])


@sql.post(SQL, response_model=RowSqlBody)
async def run_row_sql(request: Request) -> Response:
    """Carry out statements about rows, in order: INSERT, UPDATE, DELETE, SELECT and EXPLAIN.
    All of the text is read before anything is done. A statement that fails ends it: the problem
    tells its number and place, and the `results` of those before it, which are done. The text from
    `rest` on was not begun."""
    key = SqlKey(_key(request), times_of(request))
    service = service_of(request)
    try:
        body = await run(service, await json_body(request, RowSqlRequest), key)
    except MetaError as error:
        if "results" not in error.facts:
            raise
        return await _problem_with_results(request, error)
    rows = sum(len(result.rows) for result in body.results)
    data = await run_in_thread(is_small(rows, 0), _json, body)
    return whole_answer(data, MediaType.JSON, _held(request, data).release)


async def _problem_with_results(request: Request, error: MetaError) -> Response:
    """Its results are as large as those of a success, and are counted alike."""
    path, request_id = request.url.path, getattr(request.state, "request_id", "")
    status, headers, data = await run_in_thread(False, problem_bytes, error, path, request_id)
    media_type, held = headers.pop("content-type"), _held(request, data)
    return whole_answer(data, media_type, held.release, headers, status)


def _held(request: Request, data: bytes) -> HeldBytes:
    """Room for an answer until its reader has it. Raises Unavailable: sent again under its key,
    the text is done once."""
    return service_of(request).pages.hold(len(data) if len(data) > SMALL_BYTES else 0)


def _json(body: RowSqlBody) -> bytes:
    return orjson.dumps(body.model_dump(mode="json", warnings=False))


def _key(request: Request) -> str:
    header = request.headers.get("idempotency-key")
    if header is None:
        return uuid4().hex
    if not 1 <= len(header) <= KEY_CHARS_MAX or not header.isprintable():
        raise Refused("bad-idempotency-key")
    return header
