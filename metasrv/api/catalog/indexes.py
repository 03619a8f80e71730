"""T/indexes: made, looked at and dropped while rows are written."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from metasrv.api.catalog.tables import TABLE
from metasrv.api.documents.documented import BODY, OF_TABLE, change, read
from metasrv.api.http.answers import read_answer
from metasrv.api.http.page_query import freshness
from metasrv.api.http.query import ReadQuery
from metasrv.api.http.request_context import AskedFor, AskedToDropElement, OfTable, Server
from metasrv.api.http.respond import executed
from metasrv.service.ddl import ddl_indexes
from metasrv_base.wire.api.tables import IndexBody, IndexList, IndexSpec

INDEXES = TABLE + "/indexes"

router = APIRouter(prefix="/v1", tags=["indexes"])
IndexName = Annotated[str, Path()]


@router.get(INDEXES, response_model=IndexList, responses=read(*OF_TABLE))
async def list_indexes(
    request: Request, state: Server, name: OfTable, query: Annotated[ReadQuery, Query()]
) -> Response:
    """All indexes of a table, with their states."""
    body, view = await ddl_indexes.indexes(state, name, freshness(query))
    return read_answer(request, body, view)


@router.post(
    INDEXES,
    status_code=201,
    response_model=None,
    responses=change(
        201,
        IndexBody,
        *BODY,
        *OF_TABLE,
        "reserved-name",
        "unsupported",
        "already-exists",
        "invalid-schema-change",
        "unique-needs-partition-columns",
        "unique-violation",
    ),
)
async def create_index(
    state: Server, context: AskedFor, name: OfTable, spec: IndexSpec
) -> Response:
    """Make an index, over the rows that are there too. 201 means that it is public, unless it was
    asked for with `not_valid`."""
    return await executed(state, context, ddl_indexes.create_index(context, name, spec))


@router.get(INDEXES + "/{index}", response_model=IndexBody, responses=read(*OF_TABLE))
async def get_index(
    request: Request,
    state: Server,
    name: OfTable,
    index: IndexName,
    query: Annotated[ReadQuery, Query()],
) -> Response:
    """One index, with its state."""
    body, view = await ddl_indexes.index(state, name, index, freshness(query))
    return read_answer(request, body, view)


@router.post(
    INDEXES + "/{index}/validate",
    response_model=None,
    responses=change(200, IndexBody, *OF_TABLE, "unique-violation"),
)
async def validate_index(
    state: Server, context: AskedFor, name: OfTable, index: IndexName
) -> Response:
    """Make a unique index public that was left write-only; 422 names the rows in its way."""
    return await executed(state, context, ddl_indexes.validate_index(context, name, index))


@router.delete(
    INDEXES + "/{index}",
    status_code=204,
    response_model=None,
    responses=change(204, None, *OF_TABLE),
)
async def drop_index(
    state: Server, context: AskedToDropElement, name: OfTable, index: IndexName
) -> Response:
    """Drop an index, with its entries."""
    return await executed(state, context, ddl_indexes.drop_index(context, name, index))
