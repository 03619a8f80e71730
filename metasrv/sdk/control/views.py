"""The information schema: its views, and the rows of one."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote

from metasrv.sdk.control.service import PAGE, ControlService, past

if TYPE_CHECKING:
    from metasrv_base.wire.language.views import ViewBody, ViewPage

PATH = "/v1/information-schema"


class ViewOptions(TypedDict, total=False):
    """Keyword arguments of a read of a view."""

    where: str | None
    """Only rows of which this condition is true, as `table_schema = 'public' and rows > 0`."""
    columns: Sequence[str]
    """Only these columns, in this order; default: all."""
    as_of: str | None
    """A version of the catalog, as `17`, or a time, as 2013-01-31T23:59:59Z; default: now."""
    limit: int | None
    """The most rows; default: all."""


@dataclass(frozen=True, slots=True)
class ViewRows:
    """Rows of a view."""

    view: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Rows in the order of the view. A time is an RFC 3339 text."""
    catalog_version: int
    """The version of the catalog that all rows are of, where the view is of a version."""

    def records(self) -> list[dict[str, Any]]:
        """Rows as dicts, as `pandas.DataFrame` and `pyarrow.Table.from_pylist` take them."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class InformationSchema:
    """`client.information_schema`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def views(self) -> "list[ViewBody]":
        """All views by name, with the columns of each and what they mean."""
        from metasrv_base.wire.language.views import ViewList

        return list((await self._service.read(ViewList, PATH)).views)

    async def pages(
        self, view: str, **options: Unpack[ViewOptions]
    ) -> "AsyncGenerator[ViewPage, None]":
        """Yields the rows of a view page by page. Raises NotFound for a view that there is not,
        Refused for a filter or a column that means nothing."""
        from metasrv_base.wire.language.views import ViewPage

        params = past(options.get("as_of"))
        if (where := options.get("where")) is not None:
            params = {**params, "where": where}
        if columns := options.get("columns"):
            params = {**params, "columns": ",".join(columns)}
        left = options.get("limit")
        if left is not None:
            params = {**params, "page_size": max(1, min(left, PAGE))}
        path = f"{PATH}/{quote(view, safe='')}"
        async for page in self._service.pages(ViewPage, path, params, of_catalog=True):
            if left is not None and len(page.rows) >= left:
                yield page.model_copy(update={"rows": page.rows[:left]})
                return
            left = None if left is None else left - len(page.rows)
            yield page

    async def rows(self, view: str, **options: Unpack[ViewOptions]) -> ViewRows:
        """Reads the rows of a view. Raises as `pages`."""
        last: ViewPage | None = None
        rows: list[tuple[Any, ...]] = []
        async for page in self.pages(view, **options):
            rows += page.rows
            last = page
        assert last is not None, "a view has one page at least"
        return ViewRows(last.view, last.columns, tuple(rows), last.catalog_version)
