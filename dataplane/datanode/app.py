"""The ASGI app as a function of a ready service. Opens nothing and starts no task."""

from fastapi import FastAPI

from dataplane.datanode.api import admin, node
from dataplane.datanode.door import doorway
from dataplane.datanode.service import Service
from serving.answers import PROBLEM, answer_errors
from serving.door import Door

TITLE = "metasrv datanode"


def build_app(service: Service) -> FastAPI:
    app = bare_app()
    app.state.service = service
    app.add_middleware(Door, doorway=doorway(service.metrics, service.clock))
    return app


def bare_app() -> FastAPI:
    """Routes and error answers without a service: what the document is made of."""
    app = FastAPI(title=TITLE, version="1", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(node, responses=dict(PROBLEM))
    app.include_router(admin, responses=dict(PROBLEM))
    answer_errors(app)
    return app
