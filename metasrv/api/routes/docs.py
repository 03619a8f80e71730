"""/, /docs and /openapi.json: what this server is and understands."""

from typing import Any

from fastapi import Request

from metasrv.api.documents.documented import problems
from metasrv.api.documents.openapi_fixups import shaped
from serving.pages.program_pages import StartPage, pages_router

START = StartPage.of(
    "metasrv",
    {
        "/v1/cluster": "The servers, the leader and the version of the catalog",
        "/v1/catalogs": "Catalogs; below them schemas and tables",
        "/v1/information-schema": "Views of tables, regions, nodes, procedures and more",
        "/v1/catalog/versions": "Changes of the catalog, newest first",
        "/v1/nodes": "Datanodes, with their leases",
        "/v1/procedures": "Changes that are under way, or were",
        "/readyz": "Whether this server can answer reads",
        "/version": "Version of this server, and its cluster",
        "/metrics": "Counters in the Prometheus text format",
    },
)


def _document(request: Request) -> dict[str, Any]:
    """The document. The first call makes it, which takes a while; the framework keeps it."""
    return shaped(request.app.openapi())


router = pages_router(START, _document, problems())
