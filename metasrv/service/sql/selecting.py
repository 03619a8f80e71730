"""A view as a query reads it: filtered, ordered, cut; no more rows are held than are answered."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from heapq import merge
from typing import Any

from metasrv.service.catalog.reading import Freshness
from metasrv.service.state.state import ServerState
from metasrv.service.views.pages import places_of
from metasrv.service.views.reading import begun, opened, row_slices
from metasrv.service.views.view import Row, View, ViewValue, json_value
from metasrv.service.views.views import must_have_columns, view_named
from metasrv.service.views.where import ViewFilter
from metasrv_base.concurrency.turns import Turns, by_turns, slices

MERGED_IN_TURN = 1_024  # rows


@dataclass(frozen=True, slots=True)
class ViewSelection:
    view: str
    columns: tuple[str, ...]
    """Empty: all."""
    where: str | None
    order_by: tuple[tuple[str, bool], ...]
    """Columns, each with whether it descends; empty: the order of the view. Nulls are last, or
    first where it descends, as in PostgreSQL."""
    limit: int


@dataclass(frozen=True, slots=True)
class SelectedRows:
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[ViewValue, ...], ...]
    is_cut: bool
    """Whether there are more than the limit."""
    catalog_version: int


async def select(state: ServerState, query: ViewSelection) -> SelectedRows:
    """Raises NotFound for a view, Refused for a column or a filter that means nothing, with the
    pointer `/view`, `/columns/n`, `/order_by/n` or `where`."""
    view = view_named(query.view)
    for number, name in enumerate(query.columns):
        must_have_columns(view, (name,), f"/columns/{number}")
    for number, (name, _) in enumerate(query.order_by):
        must_have_columns(view, (name,), f"/order_by/{number}")
    condition = ViewFilter.of(view, query.where)
    catalog_view = await opened(state, view, Freshness())
    read = await begun(state, catalog_view, view, condition)
    first = _First(view, query)
    async with aclosing(row_slices(state, read)) as parts:
        async for some in parts:
            first.add(some.rows)
            if first.is_full:
                if not query.order_by:
                    break
                await by_turns(first.cut())
    await by_turns(first.cut())
    places = places_of(view, query.columns)
    rows = (
        tuple(json_value(view.types[index], row[index]) for index in places)
        for row in first.rows[: query.limit]
    )
    return SelectedRows(
        tuple(view.columns[index].name for index in places),
        tuple(view.columns[index].type for index in places),
        tuple(rows),
        len(first.rows) > query.limit,
        catalog_view.catalog.version,
    )


class _First:
    """The first rows of a query, and one more: it says that there are others."""

    def __init__(self, view: View, query: ViewSelection) -> None:
        self._keys = [(view.places[name], descends) for name, descends in query.order_by]
        self._most = query.limit + 1
        self._runs: list[list[tuple[Any, ...]]] = []
        self._held = 0
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether there are enough rows to cut some off."""
        return self._held >= self._most + (MERGED_IN_TURN if self._keys else 0)

    def add(self, rows: Sequence[Row]) -> None:
        run = []
        for row in rows:
            self._count += 1
            run.append(
                (*(_key(row[index], descends) for index, descends in self._keys), self._count, row)
            )
        self._runs.append(sorted(run))
        self._held += len(run)

    def cut(self) -> Turns[None]:
        kept: list[tuple[Any, ...]] = []
        for some in slices(merge(*self._runs), MERGED_IN_TURN):
            kept += some
            if len(kept) >= self._most:
                break
            yield
        self._runs = [kept[: self._most]]
        self._held = len(self._runs[0])

    @property
    def rows(self) -> list[Row]:
        """The rows in order. Cuts off those beyond the limit first."""
        return [entry[-1] for run in self._runs for entry in run]


def _key(value: ViewValue, descends: bool) -> tuple[bool, Any]:
    """Sorts as a value does; a null behind all others, or before them where it descends."""
    if value is None:
        return (not descends, 0)
    return (descends, _Descending(value) if descends else value)


@dataclass(frozen=True, slots=True)
class _Descending:
    value: Any

    def __lt__(self, other: "_Descending") -> bool:
        return bool(other.value < self.value)
