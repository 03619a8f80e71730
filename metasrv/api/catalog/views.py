"""/v1/information-schema: the views, and the rows of one as JSON, CSV or Arrow."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.types import Receive, Scope, Send

from metasrv.api.documents.documented import PAGE, QUERY, Responses, problems
from metasrv.api.http.answers import STALE_HEADER, VERSION_HEADER, answer, read_answer
from metasrv.api.http.page_query import freshness
from metasrv.api.http.query import PAGE_SIZE, PageQuery, Whole
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import Server
from metasrv.service.catalog.listing import ListRequest
from metasrv.service.catalog.reading import CatalogView
from metasrv.service.state.state import ServerState
from metasrv.service.views.pages import view_list, view_page
from metasrv.service.views.streams import ViewStreamRequest, stream
from metasrv_base.errors import Refused
from metasrv_base.wire.language.views import (
    ARROW,
    COLUMNS_CHARS_MAX,
    CSV,
    WHERE_CHARS_MAX,
    ViewList,
    ViewPage,
)
from serving.timed_stream import Begun, TimedStream

Format = Literal["json", "csv", "arrow"]
FORMATS: dict[Format, str] = {"csv": CSV, "arrow": ARROW}


class ViewQuery(PageQuery):
    """Parameters of a view."""

    where: str | None = Field(default=None, max_length=WHERE_CHARS_MAX)
    """Only rows of which this condition is true: a condition as that of CHECK, over the columns of
    the view, as `table_schema = 'public' and region_count > 1`."""
    columns: str | None = Field(default=None, max_length=COLUMNS_CHARS_MAX)
    """Only these columns, in this order, with commas between."""
    format: Format | None = None
    """Goes before the header `Accept`. CSV and Arrow are no pages: they have all rows."""
    limit: Whole | None = Field(default=None, ge=1)
    """The most rows of CSV or Arrow."""


class ViewStream(TimedStream):
    """The rows of one view. It takes its place when its first byte is due."""

    def __init__(
        self, state: ServerState, parts: Begun, media_type: str, headers: dict[str, str]
    ) -> None:
        super().__init__(parts, media_type, headers=headers)
        self._places = state.views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._places.counted():
            await super().__call__(scope, receive, send)


router = APIRouter(prefix="/v1", tags=["views"])

_ROWS: Responses = {
    200: {
        "model": ViewPage,
        "description": "One page; or all rows, as CSV or Arrow.",
        "content": {
            CSV: {"schema": {"type": "string"}},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    },
    304: {"description": "The client has it already (If-None-Match)."},
    **problems(*PAGE),
}


@router.get("/information-schema", response_model=ViewList, responses=problems(*QUERY))
async def list_views(query: Annotated[NoQuery, Query()]) -> Response:
    """The views of the information schema, with their columns."""
    return answer(view_list())


@router.get("/information-schema/{view}", response_model=None, responses=_ROWS)
async def read_view(
    request: Request, state: Server, view: str, query: Annotated[ViewQuery, Query()]
) -> Response:
    """The rows of one view: a page as JSON; or all, as CSV or Arrow."""
    columns = tuple(query.columns.split(",")) if query.columns else ()
    media_type = _media_type(request, query)
    if media_type is not None:
        stream_request = ViewStreamRequest(view, columns, query.where, query.limit, media_type)
        return await _streamed(state, stream_request, query)
    if query.limit is not None:
        raise Refused("invalid-request", path="limit", reason="JSON has pages: say page_size")
    page_request = ListRequest(
        request.url.path, query.page_size, query.page_token, freshness(query)
    )
    body, catalog_view = await view_page(state, view, page_request, columns, query.where)
    return read_answer(request, body, catalog_view)


async def _streamed(
    state: ServerState, stream_request: ViewStreamRequest, query: ViewQuery
) -> Response:
    if query.page_token is not None or query.page_size != PAGE_SIZE:
        reason = "CSV and Arrow are no pages: say limit"
        raise Refused("invalid-request", path="page_size and page_token", reason=reason)
    state.views.must_have_room()
    pieces, catalog_view = await stream(state, stream_request, freshness(query))
    first = await anext(pieces)
    return ViewStream(
        state, Begun(first, pieces), stream_request.media_type, _headers(catalog_view)
    )


def _headers(view: CatalogView) -> dict[str, str]:
    headers = {VERSION_HEADER: str(view.catalog.version), "Cache-Control": "no-cache"}
    return {**headers, STALE_HEADER: "true"} if view.stale else headers


def _media_type(request: Request, query: ViewQuery) -> str | None:
    """The media type that the client asks for; None: JSON."""
    if query.format is not None:
        return FORMATS.get(query.format)
    accepted = request.headers.get("accept", "").split(",")
    named = [part.partition(";")[0].strip() for part in accepted]
    return next((name for name in named if name in FORMATS.values()), None)
