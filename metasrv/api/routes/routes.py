"""Every route and error answer, without a server: what the app and the document are made of."""

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from metasrv.api.catalog import (
    apply,
    batch,
    catalogs,
    indexes,
    placements,
    snapshots,
    sql,
    tables,
    tablespaces,
    versions,
    views,
)
from metasrv.api.catalog import events as catalog_events
from metasrv.api.http import answers
from metasrv.api.internal import holders, internal
from metasrv.api.routes import (
    admin,
    cluster,
    docs,
    events,
    failovers,
    nodes,
    procedures,
    region_changes,
    settings,
    steering,
    undrops,
)

TITLE = "metasrv"
ROUTERS = (
    catalogs.router,
    placements.router,
    tablespaces.router,
    tables.router,
    batch.router,
    sql.router,
    apply.router,
    versions.router,
    views.router,
    snapshots.router,
    catalog_events.router,
    indexes.router,
    undrops.router,
    procedures.router,
    steering.router,
    events.router,
    failovers.router,
    nodes.router,
    region_changes.router,
    cluster.router,
    settings.router,
    holders.public,
    internal.router,
    holders.router,
    admin.router,
    docs.router,
)


def _operation_id(route: APIRoute) -> str:
    return route.name


def _included() -> tuple[BaseRoute, ...]:
    """A copy of all routes, made once: FastAPI builds what it includes anew for each app, and that
    takes long."""
    every = APIRouter(generate_unique_id_function=_operation_id)
    for router in ROUTERS:
        every.include_router(router)
    return tuple(every.routes)


ROUTES = _included()


def bare_app() -> FastAPI:
    """The framework's own pages are off: they load from a CDN."""
    app = FastAPI(
        title=TITLE,
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.router.routes.extend(ROUTES)
    answers.install(app)
    return app
