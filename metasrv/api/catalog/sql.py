"""/v1/sql: SQL text, and tables as the SQL that makes them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.documents import table_answers
from metasrv.api.documents.documented import OF_COMMANDS, change
from metasrv.api.http.answers import answer, read_answer
from metasrv.api.http.page_query import freshness
from metasrv.api.http.query import ReadQuery
from metasrv.api.http.request_context import AskedFor, OfTable, Server
from metasrv.service.catalog import tables
from metasrv.service.sql.run import run
from metasrv_base.wire.language.sql import SqlBody, SqlRequest, TableSqlBody

TABLE_DDL = "/catalogs/{catalog}/schemas/{schema}/tables/{table}/ddl"

router = APIRouter(prefix="/v1", tags=["sql"])


@router.post(
    "/sql",
    response_model=None,
    responses=change(
        200,
        SqlBody,
        *OF_COMMANDS,
        "invalid-sql",
        "object-in-use",
        "not-found",
    ),
)
async def run_sql(state: Server, context: AskedFor, request: SqlRequest) -> Response:
    """Carry out statements of SQL, in order, each as the request of its own that says the same. All
    of the text is read before anything is done. A statement that fails ends it: the problem tells
    its number and place, and the `results` of those before it, which are done. BEGIN; ..; COMMIT is
    one batch. 202: a change is not over, and the text from `rest` on was not begun."""
    body = await run(state, context, request)
    is_over = all(result.procedure is None for result in body.results)
    return answer(body, 200 if is_over else 202)


@router.get(TABLE_DDL, response_model=TableSqlBody, responses=table_answers.GET_ROUTE)
async def get_table_sql(
    request: Request, state: Server, name: OfTable, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One table as the SQL that makes an equal one: itself, its indexes, its constraints."""
    body, view = await tables.table_sql(state, name, freshness(query))
    return read_answer(request, body, view)
