"""What is asked most often goes to its route at once, past the framework's search for it.

The framework takes longer to find a route and to fill its parameters than such an answer takes.
Only plain requests go this way: with a query, or a body that is not right, they go the long one,
which judges them. Pure ASGI, inside the door, which has judged the path and parsed the body.
"""

import re
from typing import Any

from fastapi import Request, Response
from pydantic import TypeAdapter, ValidationError
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from metasrv.api.http.query import Query, ReadQuery
from metasrv.api.http.request_context import holder_of, plainly_asked
from metasrv.api.internal import holders, internal
from metasrv.api.routes import tables
from metasrv.service.requests.ddl_request import FullSchemaName, FullTableName
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import TURN, Turns, by_turns, slices
from metasrv_base.wire.api.tables import TableSpec
from metasrv_base.wire.frontend.holders import AcknowledgeRequest
from metasrv_base.wire.node.nodes import HEARTBEAT_REGIONS_MAX, HeartbeatRequest, RegionStat

AS_IT_IS = ReadQuery()
NO_QUERY = Query()
REGION_STATS = TypeAdapter(list[RegionStat])


def _pattern(template: str) -> re.Pattern[str]:
    return compile_path(template)[0]


TABLES = _pattern(tables.router.prefix + tables.TABLES)
TABLE = _pattern(tables.router.prefix + tables.TABLE)
ROUTE = _pattern(tables.router.prefix + tables.TABLE + "/route")
HEARTBEAT = _pattern(internal.router.prefix + internal.HEARTBEAT)
ACKNOWLEDGE = _pattern(holders.router.prefix + holders.ACKNOWLEDGE)


def _beat_of(said: Any) -> Turns[HeartbeatRequest]:
    """Checks the statistics of many regions a slice at a time. Raises ValidationError."""
    regions = said.get("regions") if isinstance(said, dict) else None
    if not isinstance(regions, list) or not TURN < len(regions) <= HEARTBEAT_REGIONS_MAX:
        return HeartbeatRequest.model_validate(said)
    head = HeartbeatRequest.model_validate({**said, "regions": []})
    stats: list[RegionStat] = []
    for some in slices(regions):
        stats += REGION_STATS.validate_python(list(some))
        yield
    return head.model_copy(update={"regions": stats})


class DirectApi:
    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_plain = scope["type"] == "http" and not scope["query_string"]
        response = await self._answer(scope) if is_plain else None
        await (response or self._app)(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        """None: the long way."""
        method, path = scope["method"], scope["path"]
        if method == "GET":
            if found := TABLE.match(path):
                name = FullTableName(**found.groupdict())
                return await tables.get_table(Request(scope), self._state, name, AS_IT_IS)
            if found := ROUTE.match(path):
                name = FullTableName(**found.groupdict())
                return await tables.get_route(Request(scope), self._state, name, AS_IT_IS)
        elif method == "POST" and self._state.leads and (found := TABLES.match(path)):
            return await self._create(Request(scope), found.groupdict())
        elif method == "PUT":
            return await self._heard(Request(scope))
        return None

    async def _heard(self, request: Request) -> Response | None:
        """Of nodes and holders."""
        path, said = request.scope["path"], request.state.json
        try:
            if found := HEARTBEAT.match(path):
                beat = await by_turns(_beat_of(said))
                by = holder_of(request)
                return await internal.heartbeat(self._state, found["node_id"], NO_QUERY, beat, by)
            if found := ACKNOWLEDGE.match(path):
                seen = AcknowledgeRequest.model_validate(said)
                return await holders.acknowledge(self._state, found["holder_id"], NO_QUERY, seen)
        except ValidationError:
            return None
        return None

    async def _create(self, request: Request, schema: dict[str, str]) -> Response | None:
        """Where this server leads; elsewhere it is passed on."""
        try:
            spec = TableSpec.model_validate(request.state.json)
        except ValidationError:
            return None
        asked = plainly_asked(request)
        return await tables.create_table(self._state, asked, FullSchemaName(**schema), spec)
