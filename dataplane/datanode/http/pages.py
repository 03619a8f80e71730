"""/, /docs and /openapi.json of a datanode."""

from typing import Any

from fastapi import Request

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


pages = pages_router(START, _document, {})
