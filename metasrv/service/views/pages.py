"""The list of views, and one of them page by page: every page of a cursor is of one version."""

from contextlib import aclosing

from metasrv.service.catalog.listing import ListRequest, list_name
from metasrv.service.catalog.reading import CatalogView, page_view
from metasrv.service.pages import ListName, PageToken, seal, unseal
from metasrv.service.state.state import ServerState
from metasrv.service.views.reading import begun, opened, row_slices
from metasrv.service.views.view import Position, Row, View, ViewValue, json_value
from metasrv.service.views.views import VIEWS, must_have_columns, view_named
from metasrv.service.views.where import ViewFilter
from metasrv_base.wire.language.views import ViewBody, ViewColumnBody, ViewList, ViewPage

LOOKED_AT_MAX = 16_384
"""Rows that are looked at for one page; where a filter takes few of so many, the page is short."""


def view_list() -> ViewList:
    return ViewList(views=tuple(_body(VIEWS[name]) for name in sorted(VIEWS)))


def _body(view: View) -> ViewBody:
    columns = (
        ViewColumnBody(name=column.name, type=column.type, meaning=column.meaning)
        for column in view.columns
    )
    return ViewBody(
        name=view.name,
        meaning=view.meaning,
        columns=tuple(columns),
        of_leader=view.is_leaders,
        as_of=view.is_versioned,
    )


async def view_page(
    state: ServerState,
    name: str,
    request: ListRequest,
    columns: tuple[str, ...],
    where: str | None,
) -> tuple[ViewPage, CatalogView]:
    """Returns a page of rows. *columns*: those that are shown, in order; empty: all.

    Raises NotFound for an unknown view, Refused for unknown names in the filter or the columns.
    """
    view = view_named(name)
    must_have_columns(view, columns, "columns")
    places = places_of(view, columns)
    filter_ = ViewFilter.of(view, where)
    listed = await list_name(state, request, view.name, where)
    catalog_view, cursor = await _opened(state, view, request, listed)
    read = await begun(state, catalog_view, view, filter_)
    rows: list[tuple[ViewValue, ...]] = []
    last, looked_at, after = cursor, 0, None
    async with aclosing(row_slices(state, read, cursor)) as slices:
        async for some in slices:
            room = request.size - len(rows)
            rows += (_shown(view, row, places) for row in some.rows[:room])
            if len(some.rows) > room:
                after = some.cursors[room - 1] if room else last
                break
            last = some.cursors[-1] if some.cursors else last
            looked_at += some.looked_at
            if looked_at >= LOOKED_AT_MAX:
                after = some.end
                break
    version = catalog_view.catalog.version
    page = ViewPage(
        view=view.name,
        columns=tuple(view.columns[position].name for position in places),
        rows=tuple(rows),
        catalog_version=version,
        next_page_token=_token(listed, version if view.is_versioned else 0, after),
    )
    return page, catalog_view


def places_of(view: View, columns: tuple[str, ...]) -> tuple[int, ...]:
    """Places in a row of the columns that are shown; none named: all."""
    return tuple(view.places[name] for name in columns or view.places)


async def _opened(
    state: ServerState, view: View, request: ListRequest, listed: ListName
) -> tuple[CatalogView, Position | None]:
    if not view.is_versioned or request.token is None:
        catalog_view = await opened(state, view, request.freshness)
        token = None if request.token is None else unseal(listed, request.token)
        return catalog_view, None if token is None else token.after
    catalog_view, token = await page_view(state, request.freshness, listed, request.token)
    return catalog_view, None if token is None else token.after


def _token(listed: ListName, version: int, after: Position | None) -> str | None:
    return None if after is None else seal(listed, PageToken(version, after))


def _shown(view: View, row: Row, places: tuple[int, ...]) -> tuple[ViewValue, ...]:
    return tuple(json_value(view.types[position], row[position]) for position in places)
