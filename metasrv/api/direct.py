"""Calls the routes of the most frequent requests directly, past the framework's search.

The framework takes longer to find a route and to fill its parameters than such an answer takes.
Only plain requests are called so: one with a query, or an invalid body, goes to the framework,
which judges it. The outer middleware (serving/middleware.py) calls this module once it has judged
the path and parsed the body.
"""

import re
from collections.abc import Awaitable, Mapping
from typing import Any

from fastapi import Request, Response
from pydantic import ConfigDict, TypeAdapter, ValidationError
from starlette.routing import compile_path

from metasrv.api.catalog import batch as batches
from metasrv.api.catalog import tables
from metasrv.api.http.query import Query, ReadQuery
from metasrv.api.http.request_context import holder_of, plainly_asked
from metasrv.api.internal import holders, internal
from metasrv.service.requests.ddl_request import FullSchemaName, FullTableName
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import TURN, Turns, by_turns, slices
from metasrv_base.wire.api.batches import COMMANDS_MAX, BatchRequest
from metasrv_base.wire.api.tables import TableSpec
from metasrv_base.wire.frontend.holders import AcknowledgeRequest
from metasrv_base.wire.http.asgi import Receive, Scope
from metasrv_base.wire.node.nodes import HeartbeatRequest, RegionColumns

AS_IT_IS = ReadQuery()
NO_QUERY = Query()
COLUMNS: Mapping[str, TypeAdapter[list[Any]]] = {
    name: TypeAdapter(column.rebuild_annotation(), config=ConfigDict(strict=True))
    for name, column in RegionColumns.model_fields.items()
}
OPTIONAL = {"copies_version"}
NO_REGIONS = RegionColumns.of(()).model_dump()


def _pattern(template: str) -> re.Pattern[str]:
    return compile_path(template)[0]


BATCH = batches.router.prefix + batches.BATCH
COMMANDS_AT_ONCE = 256
"""Commands that are checked in one turn of the event loop: some 5 ms."""
TABLES = _pattern(tables.router.prefix + tables.TABLES)
TABLE = _pattern(tables.router.prefix + tables.TABLE)
ROUTE = _pattern(tables.router.prefix + tables.TABLE + "/route")
HEARTBEAT = _pattern(internal.router.prefix + internal.HEARTBEAT)
ACKNOWLEDGE = _pattern(holders.router.prefix + holders.ACKNOWLEDGE)


def read_heartbeat(body: Any) -> Turns[HeartbeatRequest]:
    """Checks the statistics of many regions, one column a turn. Raises ValidationError."""
    columns = _many_columns(body)
    if columns is None:
        return HeartbeatRequest.model_validate(body)
    head = HeartbeatRequest.model_validate({**body, "regions": NO_REGIONS})
    checked: dict[str, Any] = {}
    for name, column in COLUMNS.items():
        if name in columns:
            checked[name] = column.validate_python(columns[name])
            yield
    regions = RegionColumns.model_construct(**checked)
    if not regions.has_one_length:
        return HeartbeatRequest.model_validate(body)
    return head.model_copy(update={"regions": regions})


def read_batch(body: Any) -> Turns[BatchRequest]:
    """Checks many commands, some in a turn. Raises ValidationError."""
    commands = body.get("commands") if isinstance(body, dict) and len(body) == 1 else None
    is_many = isinstance(commands, list) and COMMANDS_AT_ONCE < len(commands) <= COMMANDS_MAX
    if not is_many or commands is None:
        return BatchRequest.model_validate(body)
    checked = list[Any]()
    for some in slices(commands, COMMANDS_AT_ONCE):
        checked += BatchRequest.model_validate({"commands": some}).commands
        yield
    return BatchRequest.model_construct(commands=tuple(checked))


def _many_columns(body: Any) -> Mapping[str, Any] | None:
    """The columns of a report of more regions than one turn checks. None: it is another body."""
    columns = body.get("regions") if isinstance(body, dict) else None
    if not isinstance(columns, dict) or columns.keys() | OPTIONAL != COLUMNS.keys():
        return None
    region_ids = columns["region_id"]
    return columns if isinstance(region_ids, list) and len(region_ids) > TURN else None


class DirectApi:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    def called(self, scope: Scope, receive: Receive) -> Awaitable[Response | None] | None:
        """The answer of the route. None: the framework finds the route."""
        method, path = scope["method"], scope["path"]
        if scope["query_string"]:
            return None
        if method == "GET":
            return self._table(scope, path)
        if method == "POST" and self._state.leads and (match := TABLES.match(path)):
            return self._create(Request(scope), match.groupdict())
        if method == "POST" and self._state.leads and path == BATCH:
            return self._batch(Request(scope))
        if method == "PUT":
            return self._report(Request(scope), path)
        return None

    def _table(self, scope: Scope, path: str) -> Awaitable[Response] | None:
        if match := TABLE.match(path):
            name = FullTableName(**match.groupdict())
            return tables.get_table(Request(scope), self._state, name, AS_IT_IS)
        if match := ROUTE.match(path):
            name = FullTableName(**match.groupdict())
            return tables.get_route(Request(scope), self._state, name, AS_IT_IS)
        return None

    def _create(self, request: Request, schema: dict[str, str]) -> Awaitable[Response] | None:
        """Answers where this server leads; else the request is forwarded."""
        try:
            spec = TableSpec.model_validate(request.state.json)
        except ValidationError:
            return None
        context = plainly_asked(request)
        return tables.create_table(self._state, context, FullSchemaName(**schema), spec)

    async def _batch(self, request: Request) -> Response | None:
        try:
            batch = await by_turns(read_batch(request.state.json))
        except ValidationError:
            return None
        return await batches.run_batch(self._state, plainly_asked(request), batch)

    def _report(self, request: Request, path: str) -> Awaitable[Response | None] | None:
        """Answers heartbeats of nodes and acknowledgements of holders."""
        if match := HEARTBEAT.match(path):
            return self._heartbeat(request, match["node_id"])
        if match := ACKNOWLEDGE.match(path):
            try:
                body = AcknowledgeRequest.model_validate(request.state.json)
            except ValidationError:
                return None
            return holders.acknowledge(self._state, match["holder_id"], NO_QUERY, body)
        return None

    async def _heartbeat(self, request: Request, node_id: str) -> Response | None:
        try:
            beat = await by_turns(read_heartbeat(request.state.json))
        except ValidationError:
            return None
        by = holder_of(request)
        return await internal.heartbeat(self._state, node_id, NO_QUERY, beat, by)
