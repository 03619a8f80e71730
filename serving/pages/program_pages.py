"""Pages of a program about itself: `/` with its links, `/docs` with Swagger UI, `/openapi.json`,
and a page for each problem code.

Swagger UI comes from an installed package (docs/decisions/0182), its addresses are relative, and a
content policy forbids the browser to load anything from another host.
"""

import asyncio
from collections.abc import Callable, Mapping
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Self

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel

from metasrv_base.errors import NotFound
from serving.pages.problem_pages import HTML, add_problem_pages

ASSETS: Mapping[str, str] = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}
"""Files of the package that the page loads, by name, with their media types."""
START = "start.js"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # Swagger UI sets styles on its elements
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_SAFE = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
_START = """SwaggerUIBundle({
  url: new URL("openapi.json", document.baseURI).href,
  dom_id: "#page",
  deepLinking: true,
  docExpansion: "none",
  validatorUrl: null,
});
"""
_STYLE = "body { font: 16px/1.6 system-ui, sans-serif; margin: 3rem auto; max-width: 40rem }"


class PageLink(BaseModel):
    """An address of this program, relative to its root."""

    path: str
    about: str


class StartPage(BaseModel):
    """Names a program and lists its addresses."""

    title: str
    links: tuple[PageLink, ...]

    @classmethod
    def of(cls, title: str, links: Mapping[str, str]) -> Self:
        """Builds the page of a program. *links* describe each path to people; `/docs` and
        `/openapi.json` come first."""
        every = {
            "/docs": "Every route, with its parameters and answers",
            "/openapi.json": "The same as an OpenAPI document",
            **links,
        }
        page_links = (PageLink(path=path, about=about) for path, about in every.items())
        return cls(title=title, links=tuple(page_links))


def pages_router(
    start: StartPage, document: Callable[[Request], Any], responses: Mapping[int | str, Any]
) -> APIRouter:
    """The routes. *document*: the OpenAPI document as JSON values; called in a thread.
    *responses*: the errors that each route documents."""
    router = APIRouter(tags=["admin"])

    @router.get(
        "/",
        response_model=None,
        responses={200: {"model": StartPage, "content": {"text/html": {}}}, **responses},
    )
    async def start_page(request: Request) -> Response:
        """The addresses of this program: HTML if `Accept` names it, else JSON."""
        wants_html = "text/html" in request.headers.get("accept", "")
        body = _start_html(start) if wants_html else start.model_dump_json()
        media = HTML if wants_html else "application/json"
        return Response(body, headers={**_SAFE, "Vary": "Accept"}, media_type=media)

    @router.get(
        "/docs",
        response_class=Response,
        responses={200: {"content": {"text/html": {}}}, **responses},
    )
    async def docs() -> Response:
        """Every route and model, in Swagger UI. The page loads nothing from another host."""
        return Response(_docs_html(start.title), headers=_SAFE, media_type=HTML)

    @router.get("/docs/{asset}", include_in_schema=False)
    async def docs_asset(asset: str) -> Response:
        return _asset(asset)

    @router.get(
        "/openapi.json",
        response_class=Response,
        responses={200: {"content": {"application/json": {}}}, **responses},
    )
    async def openapi_document(request: Request) -> Response:
        """The OpenAPI document of this program."""
        text = await asyncio.to_thread(document, request)
        return Response(orjson.dumps(text), media_type="application/json")

    add_problem_pages(router)
    return router


def _asset(name: str) -> Response:
    if name == START:
        return Response(_START, headers=_SAFE, media_type="text/javascript; charset=utf-8")
    if name not in ASSETS:
        raise NotFound("not-found", what="route", name=f"/docs/{name}"[:64])
    path = Path(str(resources.files("fastapi_offline") / "static" / name))
    return FileResponse(path, headers=_SAFE, media_type=ASSETS[name])


def _start_html(start: StartPage) -> str:
    items = "".join(
        f'<li><a href="{escape(link.path.removeprefix("/"))}">{escape(link.path)}</a> '
        f"{escape(link.about)}</li>"
        for link in start.links
    )
    head = _head(start.title, f"<style>{_STYLE}</style>")
    return f"{head}<body><h1>{escape(start.title)}</h1><ul>{items}</ul></body></html>"


def _docs_html(title: str) -> str:
    scripts = "".join(
        f'<script src="docs/{name}"></script>' for name in ("swagger-ui-bundle.js", START)
    )
    head = _head(title, '<link rel="stylesheet" href="docs/swagger-ui.css">')
    return f'{head}<body><div id="page"></div>{scripts}</body></html>'


def _head(title: str, more: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<link rel="icon" href="data:,">{more}</head>'
    )
