"""A view sent whole as CSV or Arrow: batches that are bounded, all of one version."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.csv

from metasrv.service.catalog.reading import CatalogView, Freshness
from metasrv.service.state.state import ServerState
from metasrv.service.views.pages import places_of
from metasrv.service.views.reading import ViewRead, begun, opened, row_slices
from metasrv.service.views.view import Row, json_value
from metasrv.service.views.views import must_have_columns, view_named
from metasrv.service.views.where import ViewFilter
from metasrv_base.schema.arrays import arrow_array
from metasrv_base.wire.language.views import CSV

BATCH_ROWS = 1_024
"""Rows from which on a piece is sent; the rows of one table are never parted, so it has at most
three times as many."""


@dataclass(frozen=True, slots=True)
class ViewStreamRequest:
    view: str
    columns: tuple[str, ...]
    """Empty: all."""
    where: str | None
    limit: int | None
    """The most rows; None: all."""
    media_type: str


async def stream(
    state: ServerState, request: ViewStreamRequest, freshness: Freshness
) -> tuple[AsyncGenerator[bytes, None], CatalogView]:
    """Raises as `view_page`, before anything is sent."""
    view = view_named(request.view)
    must_have_columns(view, request.columns, "columns")
    filter_ = ViewFilter.of(view, request.where)
    catalog_view = await opened(state, view, freshness)
    read = await begun(state, catalog_view, view, filter_)
    return _pieces(state, read, request), catalog_view


async def _pieces(
    state: ServerState, read: ViewRead, request: ViewStreamRequest
) -> AsyncGenerator[bytes, None]:
    encoder = _Encoder(read, places_of(read.view, request.columns), request.media_type)
    waiting: list[Row] = []
    left = request.limit
    async with aclosing(row_slices(state, read)) as slices:
        async for some in slices:
            waiting += some.rows if left is None else some.rows[:left]
            left = None if left is None else max(0, left - len(some.rows))
            if len(waiting) >= BATCH_ROWS:
                yield encoder.piece(waiting)
                waiting = []
            if left == 0:
                break
    yield encoder.piece(waiting) + encoder.end()


class _Encoder:
    """Pieces of one answer. The first has the head, also where there are no rows."""

    def __init__(self, read: ViewRead, places: tuple[int, ...], media_type: str) -> None:
        self._read = read
        self._places = places
        self._is_csv = media_type == CSV
        fields = [(read.view.columns[position].name, self._type(position)) for position in places]
        version = str(read.facts.catalog.version)
        self._schema = pa.schema(fields, metadata={"catalog_version": version})
        self._out = BytesIO()
        self._writer = self._opened()

    def piece(self, rows: list[Row]) -> bytes:
        if rows:
            arrays = [self._array(position, rows) for position in self._places]
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        return self._taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._taken()

    def _opened(self) -> "pyarrow.csv.CSVWriter | pa.ipc.RecordBatchStreamWriter":
        if self._is_csv:
            return pyarrow.csv.CSVWriter(self._out, self._schema)
        return pa.ipc.new_stream(self._out, self._schema)

    def _type(self, position: int) -> pa.DataType:
        type = self._read.view.types[position]
        return pa.string() if self._is_csv and type.name == "timestamp" else type.arrow

    def _array(self, position: int, rows: list[Row]) -> pa.Array:
        type = self._read.view.types[position]
        values = [row[position] for row in rows]
        if self._is_csv and type.name == "timestamp":
            return pa.array([json_value(type, value) for value in values], pa.string())
        return arrow_array(type, values)

    def _taken(self) -> bytes:
        piece = self._out.getvalue()
        self._out.seek(0)
        self._out.truncate()
        return piece
