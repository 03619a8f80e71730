"""metasrv as a node sees it, as small as it can be: registers, grants leases, gives instructions.

A real HTTP server in a thread of its own; an ordinary class that tests tell what to answer.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import uvicorn
from fastapi import FastAPI, Response

from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv_base.errors import MetaError
from metasrv_base.wire.model import WireModel
from metasrv_base.wire.node.copy_changes import (
    CopyChangeResult,
    CopyChangesAnswer,
    CopyChangesRequest,
)
from metasrv_base.wire.node.nodes import (
    Grant,
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.orders import LeaseGrant, Order, OrderError
from metasrv_base.wire.problem.problems import problem_of

CLUSTER = "cluster-of-the-test"


@dataclass
class Told:
    """The contents of the next answers. Changed by tests, read by the server; each change is one
    store."""

    cluster_id: str = CLUSTER
    term: int = 1
    heartbeat_ms: int = 100
    lease_ms: int = 60_000
    grants_all: bool = True
    """Whether every region that a heartbeat reports open is granted at its epoch."""
    instructions: list[Order] = field(default_factory=list)
    """Given once."""
    changes_copies: bool = False
    """Whether the changes of copies that leaders ask for are done."""
    refuse: MetaError | None = None
    """Every call is answered with it."""


class FakeMetasrv:
    """A context. `url` is set inside."""

    def __init__(self, told: Told | None = None, port: int = 0) -> None:
        self.told = told or Told()
        self._port = port
        self.url = ""
        self.registered: list[RegisterRequest] = []
        self.heard: list[HeartbeatRequest] = []
        self.changes_asked: list[CopyChangesRequest] = []
        self._changed = threading.Condition()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "FakeMetasrv":
        listening = socket.create_server(("127.0.0.1", self._port))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        settings = {"log_config": None, "access_log": False, "lifespan": "off", "ws": "none"}
        self._server = _Server(uvicorn.Config(self._app(), **settings))  # type: ignore[arg-type]
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._server.serve(sockets=[listening]),)
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(10)

    def wait_for(self, seen: Callable[[], bool], timeout_s: float = 240) -> None:
        """Until `seen` holds; asked again after each call of a node."""
        with self._changed:
            assert self._changed.wait_for(seen, timeout_s), "the node did not do it in time"

    def lease_for(self, node_id: str, lease_ms: int = 60_000) -> LeaseGrant:
        """Counted from the node's last heartbeat."""
        last = self.last(node_id)
        return LeaseGrant(incarnation=last.incarnation, heartbeat=last.sequence, lease_ms=lease_ms)

    def last(self, node_id: str) -> HeartbeatRequest:
        """The last heartbeat of a node. One that has just started may not have sent any yet."""
        self.wait_for(lambda: any(beat.node_id == node_id for beat in self.heard))
        return next(beat for beat in reversed(self.heard) if beat.node_id == node_id)

    def reports(self, node_id: str, region_id: str) -> str | None:
        """State of a region in the node's last heartbeat."""
        beats = [beat for beat in self.heard if beat.node_id == node_id]
        stat = RegionReport(beats[-1].regions).get(region_id) if beats else None
        return stat.state if stat else None

    def _app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/internal/v1/nodes/{node_id}/register", response_model=None)
        async def register(node_id: str, request: RegisterRequest) -> RegisterAnswer | Response:
            return self._noted(self.registered, request) or self._register_answer()

        @app.put("/internal/v1/nodes/{node_id}/heartbeat", response_model=None)
        async def heartbeat(node_id: str, beat: HeartbeatRequest) -> HeartbeatAnswer | Response:
            return self._noted(self.heard, beat) or self._heartbeat_answer(beat)

        @app.post("/internal/v1/nodes/{node_id}/copies", response_model=None)
        async def copies(node_id: str, request: CopyChangesRequest) -> CopyChangesAnswer | Response:
            return self._noted(self.changes_asked, request) or self._changed_answer(request)

        return app

    def _changed_answer(self, request: CopyChangesRequest) -> CopyChangesAnswer:
        """Every change is done, if the test lets it."""
        error = OrderError(code="not-ready", facts={})
        results = [
            CopyChangeResult(region_id=change.region_id, copies_version=change.copies_version + 1)
            if self.told.changes_copies
            else CopyChangeResult(region_id=change.region_id, error=error)
            for change in request.changes
        ]
        return CopyChangesAnswer(results=results)

    def _noted(self, seen: list[Any], request: WireModel) -> Response | None:
        with self._changed:
            seen.append(request)
            self._changed.notify_all()
        if self.told.refuse is None:
            return None
        status, headers, body = problem_of(self.told.refuse, "/", "test")
        return Response(orjson.dumps(body), status, headers)

    def _register_answer(self) -> RegisterAnswer:
        told = self.told
        return RegisterAnswer(
            cluster_id=told.cluster_id,
            term=told.term,
            heartbeat_ms=told.heartbeat_ms,
            lease_ms=told.lease_ms,
            settings_version=1,
        )

    def _heartbeat_answer(self, beat: HeartbeatRequest) -> HeartbeatAnswer:
        told = self.told
        reported = RegionReport(beat.regions).values() if told.grants_all else ()
        grants = [
            Grant(region_id=stat.region_id, epoch=stat.epoch)
            for stat in reported
            if stat.state == "open"
        ]
        instructions, told.instructions = told.instructions, []
        return HeartbeatAnswer(
            sequence=beat.sequence,
            term=told.term,
            lease_ms=told.lease_ms,
            settings_version=1,
            catalog_version=1,
            grants=grants,
            instructions=instructions,
        )


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
