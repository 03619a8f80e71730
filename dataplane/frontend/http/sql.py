"""/v1/sql of a frontend: statements about rows."""

from uuid import uuid4

import orjson
from fastapi import APIRouter, Request, Response

from dataplane.frontend.http.answers import MediaType
from dataplane.frontend.http.api import json_body, sent_ms_of, service_of
from dataplane.frontend.sql.run import SqlKey, run
from metasrv_base.concurrency.run_in_thread import is_small, run_in_thread
from metasrv_base.errors import Refused
from metasrv_base.wire.language.row_sql import RowSqlBody, RowSqlRequest
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
    key = SqlKey(_key(request), sent_ms_of(request))
    service = service_of(request)
    body = await run(service, await json_body(request, RowSqlRequest), key)
    rows = sum(len(result.rows) for result in body.results)
    data = await run_in_thread(is_small(rows, 0), _json, body)
    held = service.pages.hold(len(data) if len(data) > SMALL_BYTES else 0)
    return whole_answer(data, MediaType.JSON, held.release)


def _json(body: RowSqlBody) -> bytes:
    return orjson.dumps(body.model_dump(mode="json", warnings=False))


def _key(request: Request) -> str:
    given = request.headers.get("idempotency-key")
    if given is None:
        return uuid4().hex
    if not 1 <= len(given) <= KEY_CHARS_MAX or not given.isprintable():
        raise Refused("bad-idempotency-key")
    return given
