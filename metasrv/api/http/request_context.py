"""Converts a request to plain values: the server, the conditions, and the time that the client
waits.

All of them are `async`, though none waits: FastAPI would call them in threads, one hop for each.
"""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Header, Path, Request
from fastapi import Query as QueryOf

from metasrv.api.http.query import ChangeQuery, DropQuery, ElementDropQuery, TableDropQuery
from metasrv.service.requests.ddl_request import FullSchemaName, FullTableName
from metasrv.service.requests.request_context import (
    ANONYMOUS,
    RequestContext,
    VersionTag,
    idempotency_key,
    if_match,
    prefer_wait,
)
from metasrv.service.state.state import ServerState
from metasrv_base.values.frozen import frozen

NOTHING_MORE = ChangeQuery()
IDENTIFIER = "^[A-Za-z_][A-Za-z0-9_-]{0,127}$"


async def server(request: Request) -> ServerState:
    state = request.app.state.server
    assert isinstance(state, ServerState)
    return state


Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="1 to 255 printable ASCII characters, the same for every repetition of one "
        "request. The same key and request: the same procedure (`Idempotency-Replayed: true`).",
    ),
]
Match = Annotated[
    str | None,
    Header(alias="If-Match", description="ETag of the table or placement; another version is 412."),
]
Prefer = Annotated[
    str | None,
    Header(
        description="`wait=N` (at most 60 s): the final answer, if there is one by then; "
        "else 202 with the procedure as it stands. Of a read of one procedure: its end, or with "
        "`If-None-Match` its next move; always 200, or 304 where it has not moved."
    ),
]


@frozen
class Conditions:
    """The conditions in the headers of a change."""

    key: str | None
    if_match: VersionTag | None
    wait_ms: int | None


async def wait_ms(prefer: Prefer = None) -> int | None:
    return prefer_wait(prefer)


Wait = Annotated[int | None, Depends(wait_ms)]


def holder_of(request: Request) -> str | None:
    """The holder of the token; None where no tokens are asked for."""
    holder: str | None = getattr(request.state, "principal", None)
    return holder


async def _holder(request: Request) -> str | None:
    return holder_of(request)


Holder = Annotated[str | None, Depends(_holder)]


def _principal(request: Request) -> str:
    return holder_of(request) or ANONYMOUS


async def principal(request: Request) -> str:
    return _principal(request)


Principal = Annotated[str, Depends(principal)]


async def conditions(wait: Wait, key: Key = None, match: Match = None) -> Conditions:
    """Raises Refused for headers that mean nothing, Conflict for an If-Match that cannot match."""
    return Conditions(idempotency_key(key), if_match(match), wait)


OnConditions = Annotated[Conditions, Depends(conditions)]


async def request_context(
    request: Request,
    query: Annotated[ChangeQuery, QueryOf()],
    conditions: OnConditions,
    by: Principal,
) -> RequestContext:
    return _asked(request, query, conditions, by)


def plainly_asked(request: Request) -> RequestContext:
    """The context of a request without a query, past the framework. Raises as `conditions`."""
    headers = request.headers
    headers_read = Conditions(
        idempotency_key(headers.get("idempotency-key")),
        if_match(headers.get("if-match")),
        prefer_wait(headers.get("prefer")),
    )
    return _asked(request, NOTHING_MORE, headers_read, _principal(request))


async def asked_to_drop_table(
    request: Request,
    query: Annotated[TableDropQuery, QueryOf()],
    conditions: OnConditions,
    by: Principal,
) -> RequestContext:
    return replace(_asked(request, query, conditions, by), if_exists=query.if_exists)


async def asked_to_drop(
    request: Request,
    query: Annotated[DropQuery, QueryOf()],
    conditions: OnConditions,
    by: Principal,
) -> RequestContext:
    context = _asked(request, query, conditions, by)
    return replace(context, cascade=query.cascade, if_exists=query.if_exists)


async def asked_to_drop_element(
    request: Request,
    query: Annotated[ElementDropQuery, QueryOf()],
    conditions: OnConditions,
    by: Principal,
) -> RequestContext:
    context = _asked(request, query, conditions, by)
    return replace(context, grace_s=query.grace_s, if_exists=query.if_exists)


def _asked(request: Request, query: ChangeQuery, conditions: Conditions, by: str) -> RequestContext:
    return RequestContext(
        method=request.method,
        path=request.scope["path"],
        body=request.state.json,
        request_id=request.state.request_id,
        query=request.scope["query_string"].decode("latin-1"),
        body_bytes=getattr(request.state, "body_bytes", None),
        principal=by,
        key=conditions.key,
        if_match=conditions.if_match,
        wait_ms=conditions.wait_ms,
        queue=query.on_conflict == "queue",
        dry_run=query.dry_run,
    )


Name = Annotated[str, Path(json_schema_extra={"pattern": IDENTIFIER})]


async def schema_name(catalog: Name, schema: Name) -> FullSchemaName:
    return FullSchemaName(catalog, schema)


async def table_name(catalog: Name, schema: Name, table: Name) -> FullTableName:
    return FullTableName(catalog, schema, table)


Server = Annotated[ServerState, Depends(server)]
AskedFor = Annotated[RequestContext, Depends(request_context)]
AskedToDrop = Annotated[RequestContext, Depends(asked_to_drop)]
AskedToDropTable = Annotated[RequestContext, Depends(asked_to_drop_table)]
AskedToDropElement = Annotated[RequestContext, Depends(asked_to_drop_element)]
InSchema = Annotated[FullSchemaName, Depends(schema_name)]
OfTable = Annotated[FullTableName, Depends(table_name)]
