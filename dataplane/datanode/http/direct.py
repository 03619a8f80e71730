"""Batches and reads by key go to their routes at once, past the framework's search (decision 71).

The framework takes longer to find a route and to fill its parameters than a row takes to be found.
Only plain requests are called so: one with invalid keys goes to the framework, which judges it. The
outer middleware (serving/middleware.py) calls this module once it has judged path and JSON.
"""

import re
from collections.abc import Awaitable

from fastapi import Request, Response
from pydantic import ValidationError

from dataplane.datanode.http.api import get_rows, write_batch
from dataplane.datanode.service import DatanodeService
from metasrv_base.wire.http.asgi import Receive, Scope
from metasrv_base.wire.node.batches import GetRows

_PATH = re.compile(r"/node/v1/regions/([1-9][0-9]{0,18})/(get|batch)", re.ASCII)


class DirectRows:
    def __init__(self, service: DatanodeService) -> None:
        self._service = service

    def called(self, scope: Scope, receive: Receive) -> Awaitable[Response] | None:
        """The answer of the route. None: the framework finds the route."""
        match = _PATH.fullmatch(scope["path"])
        if match is None or scope["method"] != "POST" or scope["query_string"]:
            return None
        region_id = int(match[1])
        if match[2] == "batch":
            return write_batch(Request(scope, receive), region_id, self._service)
        try:
            query = GetRows.model_validate_json(scope["state"]["body"])
        except ValidationError:
            return None
        return get_rows(query, Request(scope), region_id, self._service)
