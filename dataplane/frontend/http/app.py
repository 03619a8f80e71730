"""The ASGI app as a function of a ready service. Opens nothing and starts no task."""

import re
from typing import Any

from fastapi import FastAPI, Request

from dataplane.frontend.http import direct
from dataplane.frontend.http.api import BY_ID, BY_NAME, admin, rows
from dataplane.frontend.http.documents import completed
from dataplane.frontend.http.sql import sql
from dataplane.frontend.service import FrontendService
from metasrv_base.wire.http.asgi import App
from serving.answers import PROBLEM, answer_errors
from serving.middleware import MiddlewareDeps, counted, with_outer_middleware
from serving.openapi import document_text
from serving.pages.program_pages import StartPage, pages_router

TITLE = "metasrv frontend"
START = StartPage.of(
    TITLE,
    {
        "/readyz": "Whether this frontend holds a schema lease and has read the catalog",
        "/version": "Version of this frontend, and its cluster",
        "/metrics": "Counters in the Prometheus text format",
    },
)
DOCUMENT = "openapi/frontend.v1.json"
_TABLE = re.compile(r"/v1/tables/([0-9]+(?=/[^/]+(/get)?$)|[^/]+/[^/]+/[^/]+)")


def build_app(service: FrontendService) -> App:
    app = bare_app()
    app.state.service = service
    metrics = service.metrics
    count = counted(metrics.requests, metrics.request_seconds, _call_of)
    deps = MiddlewareDeps(service.statements.clock, count, direct=direct.called)
    return with_outer_middleware(app, deps)


def documents() -> dict[str, str]:
    """The document as a file: path in this checkout -> text. CI fails on drift."""
    return {DOCUMENT: document_text(document())}


def document() -> dict[str, Any]:
    return completed(bare_app().openapi())


def bare_app() -> FastAPI:
    """Routes and error answers without a service: what the document is made of."""
    app = FastAPI(title=TITLE, version="1", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(rows, prefix=BY_NAME, responses=dict(PROBLEM))
    app.include_router(rows, prefix=BY_ID, responses=dict(PROBLEM))
    app.include_router(sql, responses=dict(PROBLEM))
    app.include_router(admin, responses=dict(PROBLEM))
    app.include_router(pages_router(START, _document, {}), responses=dict(PROBLEM))
    answer_errors(app)
    return app


def _document(request: Request) -> dict[str, Any]:
    return completed(request.app.openapi())


def _call_of(path: str) -> str:
    return _TABLE.sub("/v1/tables/{table}", path)[:64]
