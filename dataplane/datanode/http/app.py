"""The ASGI app as a function of a ready service. Opens nothing and starts no task."""

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.routing import BaseRoute

from dataplane.datanode.http.api import admin, node
from dataplane.datanode.http.direct import DirectRows
from dataplane.datanode.http.middleware import middleware_deps
from dataplane.datanode.service import DatanodeService
from metasrv_base.wire.http.asgi import App
from serving.answers import PROBLEM, answer_errors
from serving.middleware import with_outer_middleware
from serving.pages.program_pages import StartPage, pages_router

TITLE = "metasrv datanode"
START = StartPage.of(
    TITLE,
    {
        "/node/v1/regions": "The regions that this process opens, serves, or has lost",
        "/readyz": "Whether the leader has answered a heartbeat within one lease",
        "/version": "Version of this datanode, and its cluster",
        "/metrics": "Counters in the Prometheus text format",
    },
)


def _document(request: Request) -> Any:
    return request.app.openapi()


def _included() -> tuple[BaseRoute, ...]:
    """The routes, made once: FastAPI builds what it includes anew for each app, and that takes
    long."""
    every = APIRouter()
    for router in (node, admin):
        every.include_router(router, responses=dict(PROBLEM))
    pages = pages_router(START, _document, {})  # a store in our place needs none
    every.include_router(pages, include_in_schema=False)
    return tuple(every.routes)


ROUTES = _included()


def build_app(service: DatanodeService) -> App:
    app = bare_app()
    app.state.service = service
    direct = DirectRows(service).called
    return with_outer_middleware(app, middleware_deps(service.metrics, service.clock, direct))


def bare_app() -> FastAPI:
    """Routes and error answers without a service: what the document is made of."""
    app = FastAPI(title=TITLE, version="1", docs_url=None, redoc_url=None, openapi_url=None)
    app.router.routes.extend(ROUTES)
    answer_errors(app)
    return app
