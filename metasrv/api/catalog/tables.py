"""/v1/catalogs/{catalog}/schemas/{schema}/tables, and a table by its id."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.documents import table_answers
from metasrv.api.http.answers import read_answer
from metasrv.api.http.page_query import freshness, page_query
from metasrv.api.http.query import ReadQuery, TablesQuery, Whole
from metasrv.api.http.request_context import (
    AskedFor,
    AskedToDropTable,
    InSchema,
    OfTable,
    Server,
)
from metasrv.api.http.respond import changed, executed, restored
from metasrv.service.bodies.shapes import dropped_etag, route_etag, table_etag
from metasrv.service.catalog import listing, tables
from metasrv.service.ddl import ddl_create, ddl_import, ddl_tables, restore
from metasrv.service.requests.submit_ddl import execute as make
from metasrv_base.wire.api.changes import (
    AlterRequest,
    RenameRequest,
    RestoreRequest,
    TruncateRequest,
    UndropRequest,
)
from metasrv_base.wire.api.imports import ImportRequest
from metasrv_base.wire.api.tables import RouteBody, TableBody, TableList, TableSpec

TABLES = "/catalogs/{catalog}/schemas/{schema}/tables"
TABLE = TABLES + "/{table}"

router = APIRouter(prefix="/v1", tags=["tables"])


@router.get(TABLES, response_model=TableList, responses=table_answers.LIST_TABLES)
async def list_tables(
    request: Request, state: Server, schema: InSchema, query: Annotated[TablesQuery, Query()]
) -> Response:
    """The tables of a schema, by name."""
    body, view = await listing.tables(
        state, schema, page_query(request, query), query.prefix, query.include_dropped
    )
    return read_answer(request, body, view)


@router.post(TABLES, status_code=201, response_model=None, responses=table_answers.CREATE_TABLE)
async def create_table(
    state: Server, context: AskedFor, schema: InSchema, spec: TableSpec
) -> Response:
    """Make a table. 201 means that a write sent next is accepted."""
    return await executed(state, context, ddl_create.create_table(context, schema, spec))


@router.get(TABLE, response_model=TableBody, responses=table_answers.GET_TABLE)
async def get_table(
    request: Request, state: Server, name: OfTable, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One table. Its ETag is that of its definition; where its regions are is at `/route`."""
    table, text, view = await tables.table(state, name, freshness(query))
    return read_answer(request, text, view, table_etag(table.info.table_id, table.info.version))


@router.delete(TABLE, status_code=204, response_model=None, responses=table_answers.DROP_TABLE)
async def drop_table(state: Server, context: AskedToDropTable, name: OfTable) -> Response:
    """Drop a table. It can be undropped for seven days."""
    return await executed(state, context, ddl_tables.drop_table(context, name))


@router.post(TABLE + "/undrop", response_model=None, responses=table_answers.UNDROP_TABLE)
async def undrop_table(
    state: Server, context: AskedFor, name: OfTable, undrop: UndropRequest | None = None
) -> Response:
    """Bring a dropped table back, under its name or another one."""
    request = ddl_tables.undrop_table(context, name, undrop or UndropRequest())
    return await changed(state, context, await make(state, request))


@router.post(TABLE + "/truncate", response_model=None, responses=table_answers.TRUNCATE_TABLE)
async def truncate_table(
    state: Server, context: AskedFor, name: OfTable, truncate: TruncateRequest | None = None
) -> Response:
    """Delete all rows of a table, for good. Its definition stays."""
    return await executed(state, context, ddl_tables.truncate_table(context, name))


@router.post(TABLE + "/rename", response_model=None, responses=table_answers.RENAME_TABLE)
async def rename_table(
    state: Server, context: AskedFor, name: OfTable, rename: RenameRequest
) -> Response:
    """Give a table another name, in its schema or in another one of its catalog; or two tables each
    other's."""
    return await executed(state, context, ddl_tables.rename_table(context, name, rename))


@router.post(TABLE + "/alter", response_model=None, responses=table_answers.ALTER_TABLE)
async def alter_table(
    state: Server, context: AskedFor, name: OfTable, alter: AlterRequest
) -> Response:
    """Change a table: all operations, in order, or none."""
    return await executed(state, context, ddl_tables.alter_table(context, name, alter))


@router.post(TABLE + "/restore", response_model=None, responses=table_answers.RESTORE_TABLE)
async def restore_table(
    state: Server, context: AskedFor, name: OfTable, request: RestoreRequest
) -> Response:
    """Bring the definition of an earlier version back, by an alter: columns, defaults, constraints
    and options. `not_restored` of the plan and of the answer tells what does not come back, as the
    values of a column that was dropped."""
    table = await restore.restore_table(state, context, name, request)
    return await restored(state, context, await make(state, table.request), table.not_restored)


@router.post(TABLE + "/check", response_model=None, responses=table_answers.CHECK_TABLE)
async def check_table(state: Server, context: AskedFor, name: OfTable) -> Response:
    """Hold all rows and entries of a table against its schema, as of one moment in each region.
    What does not fit is the answer, and changes nothing. Statements go on meanwhile; changes of the
    table wait until it is over, or cancelled, and name it in `waiting_for`."""
    return await executed(state, context, ddl_tables.check_table(context, name))


@router.post(TABLE + "/import", response_model=None, responses=table_answers.IMPORT_TABLE)
async def import_table(
    state: Server, context: AskedFor, name: OfTable, request: ImportRequest
) -> Response:
    """Bring the rows of Parquet files into a table, all of them or none. A row replaces the one
    that has its key, unless that was written since this began. The table has no index."""
    return await executed(state, context, ddl_import.import_table(context, name, request))


@router.get(TABLE + "/route", response_model=RouteBody, responses=table_answers.GET_ROUTE)
async def get_route(
    request: Request, state: Server, name: OfTable, query: Annotated[ReadQuery, Query()]
) -> Response:
    """The place of each region of a table."""
    body, view = await tables.route(state, name, freshness(query))
    return read_answer(request, body, view, route_etag(body))


@router.get("/tables/{table_id}", response_model=TableBody, responses=table_answers.GET_TABLE_BY_ID)
async def get_table_by_id(
    request: Request, state: Server, table_id: Whole, query: Annotated[ReadQuery, Query()]
) -> Response:
    """The same, by id; also of a dropped table."""
    body, view = await tables.table_by_id(state, table_id, freshness(query))
    tag = table_etag if body.dropped_at is None else dropped_etag
    return read_answer(request, body, view, tag(body.id, body.version))
