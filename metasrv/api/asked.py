"""From a request to plain values: the server, what is asked, and how long the client waits."""

from typing import Annotated

from fastapi import Depends, Header, Path, Request
from fastapi import Query as QueryOf

from metasrv.api.query import ChangeQuery
from metasrv.service.asking import ANONYMOUS, Asked, idempotency_key, if_match, prefer_wait
from metasrv.service.state import ServerState
from metasrv.service.wishes import SchemaName, TableName

IDENTIFIER = "^[A-Za-z_][A-Za-z0-9_-]{0,127}$"


def server(request: Request) -> ServerState:
    found = request.app.state.server
    assert isinstance(found, ServerState)
    return found


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
    Header(alias="If-Match", description="ETag of the table; another version is 412."),
]
Prefer = Annotated[
    str | None,
    Header(
        description="`wait=N` (at most 60 s): the final answer, if there is one by then; "
        "else 202 with the procedure as it stands."
    ),
]


def wait_ms(prefer: Prefer = None) -> int | None:
    return prefer_wait(prefer)


Wait = Annotated[int | None, Depends(wait_ms)]


def asked(
    request: Request,
    query: Annotated[ChangeQuery, QueryOf()],
    wait: Wait,
    key: Key = None,
    match: Match = None,
) -> Asked:
    """Raises Refused for headers that mean nothing, Conflict for an If-Match that cannot match."""
    return Asked(
        method=request.method,
        path=request.url.path,
        body=request.state.json,
        request_id=request.state.request_id,
        principal=getattr(request.state, "principal", ANONYMOUS),
        key=idempotency_key(key),
        if_match=if_match(match),
        wait_ms=wait,
        queue=query.on_conflict == "queue",
        dry_run=query.dry_run,
    )


Name = Annotated[str, Path(json_schema_extra={"pattern": IDENTIFIER})]


def schema_name(catalog: Name, schema: Name) -> SchemaName:
    return SchemaName(catalog, schema)


def table_name(catalog: Name, schema: Name, table: Name) -> TableName:
    return TableName(catalog, schema, table)


Server = Annotated[ServerState, Depends(server)]
AskedFor = Annotated[Asked, Depends(asked)]
InSchema = Annotated[SchemaName, Depends(schema_name)]
OfTable = Annotated[TableName, Depends(table_name)]
