"""`GET /problems/{code}`: the page that the `type` of every error answer names."""

from collections.abc import Mapping
from html import escape

from fastapi import APIRouter, Request, Response

from metasrv_base.errors import NotFound
from metasrv_base.wire.problem.problems import KINDS, page_of

HTML = "text/html; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"
_NAME_CHARS_MAX = 64
_ELEMENTS: Mapping[str, str] = {"#": "h1", "##": "h2"}


def add_problem_pages(router: APIRouter) -> None:
    """Adds the route to a program's *router*: a client resolves `type` against the address of
    the error. It is added, not included: metasrv's route table reads plain routes only."""

    @router.get("/problems/{code}", include_in_schema=False)
    async def problem_page(code: str, request: Request) -> Response:
        """The meaning of a problem code: HTML if `Accept` names it, else Markdown."""
        if code not in KINDS:
            name = f"/problems/{code}"[:_NAME_CHARS_MAX]
            raise NotFound("not-found", what="route", name=name)
        page = page_of(KINDS[code])
        wants_html = "text/html" in request.headers.get("accept", "")
        headers = {"Vary": "Accept", "X-Content-Type-Options": "nosniff"}
        if wants_html:
            headers["Content-Security-Policy"] = "default-src 'none'"
            return Response(_html(code, page), headers=headers, media_type=HTML)
        return Response(page, headers=headers, media_type=MARKDOWN)


def _html(title: str, page: str) -> str:
    """Renders *page*, headings and paragraphs with an empty line between, as an HTML document."""
    body = "".join(_block(block) for block in page.strip().split("\n\n"))
    head = f'<head><meta charset="utf-8"><title>{escape(title)}</title></head>'
    return f'<!doctype html><html lang="en">{head}<body>{body}</body></html>'


def _block(block: str) -> str:
    mark, _, rest = block.partition(" ")
    element, text = (_ELEMENTS[mark], rest) if mark in _ELEMENTS else ("p", block)
    return f"<{element}>{escape(text)}</{element}>"
