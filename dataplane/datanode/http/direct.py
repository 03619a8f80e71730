"""Batches and reads by key go to their routes at once, past the framework's search (decision 71).

The framework takes longer to find a route and to fill its parameters than a row takes to be found.
Only plain requests go this way: keys that do not fit go the long one, which judges them. Pure ASGI,
inside the door, which has judged the path and the JSON.
"""

import re

from fastapi import Request
from pydantic import ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from dataplane.datanode.http.api import get_rows, write_batch
from dataplane.datanode.http.middleware import KEYS_BYTES_MAX
from dataplane.datanode.service import DatanodeService
from metasrv_base.wire.http.asgi import read_body, replaying
from metasrv_base.wire.node.batches import GetRows

_PATH = re.compile(r"/node/v1/regions/([1-9][0-9]{0,18})/(get|batch)", re.ASCII)


class DirectRows:
    def __init__(self, app: ASGIApp, service: DatanodeService) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises MetaError, which the door answers."""
        found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None or scope["method"] != "POST" or scope["query_string"]:
            await self._app(scope, receive, send)
        elif found[2] == "batch":
            answer = await write_batch(Request(scope, receive), int(found[1]), self._service)
            await answer(scope, receive, send)
        else:
            await self._get(int(found[1]), scope, receive, send)

    async def _get(self, region_id: int, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive, KEYS_BYTES_MAX)
        again = replaying(body, receive)
        try:
            wanted = GetRows.model_validate_json(body)
        except ValidationError:
            await self._app(scope, again, send)
            return
        answer = await get_rows(wanted, Request(scope), region_id, self._service)
        await answer(scope, again, send)
