"""/, /docs and /openapi.json of a frontend."""

from typing import Any

from fastapi import Request

from dataplane.frontend.http.documents import completed
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


def _document(request: Request) -> dict[str, Any]:
    return completed(request.app.openapi())


pages = pages_router(START, _document, {})
