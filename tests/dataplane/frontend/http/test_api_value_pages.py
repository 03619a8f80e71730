"""A streamed scan asks regions for values alone; what it says is what pages with keys say."""

import json
from collections.abc import Mapping

import httpx
import pyarrow as pa
import pytest

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.http import api
from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.scans import shown_in_parts
from dataplane.region.files import file_writer
from dataplane.region.format.parts import PartSize
from dataplane.region.reads import value_scan
from metasrv_base.rows.layout import Layout
from metasrv_base.wire.node import batches as node_batches
from tests.dataplane.frontend.bench import NODE_URL, Bench, T, running
from tests.dataplane.frontend.http.requests import ARROW, SCAN, get
from tests.dataplane.frontend.tables import A, B, feed_table

ROWS = 90


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of some row groups, which have few rows."""
    monkeypatch.setattr(file_writer, "ROW_GROUP", PartSize(rows=4, bytes=1 << 20))
    monkeypatch.setattr(value_scan, "PART", PartSize(rows=5, bytes=1 << 20))
    monkeypatch.setattr(api, "STREAM_BYTES", 60)


async def _filled(bench: Bench) -> None:
    """Rows in two files, and some in memory that replace others or delete them."""
    for start in (0, 1):
        rows = [{"id": one, "a": one, "b": f"w{one}"} for one in range(start, ROWS, 2)]
        await bench.service.writes.rows(T, Op.INSERT, rows, f"fill-{start}")
        for slot in bench.node:
            assert slot.owner is not None
            slot.owner.region.maintenance.flush()
    changed = [{"id": one, "a": -one, "b": None} for one in range(0, ROWS, 30)]
    await bench.service.writes.rows(T, Op.UPSERT, changed, "change")
    await bench.service.writes.rows(T, Op.DELETE, [{"id": 17}, {"id": 60}], "delete")


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("columns", ["", "?columns=b", "?columns=b,id"])
async def test_given_files_and_rows_in_memory_when_streamed_then_rows_are_those_of_pages_with_keys(
    columns: str,
) -> None:
    async with running(feed_table(A, B, regions=2)) as bench:
        await _filled(bench)
        asked: list[bytes] = []

        async def meet(request: httpx.Request) -> None:
            asked.append(request.content)

        bench.way.meet = meet
        streamed = await get(bench, f"{SCAN}{columns}", ARROW)
        requests = len(asked)
        paged = await get(bench, f"{SCAN}{columns}")

    found = pa.ipc.open_stream(streamed.body).read_all()
    assert found.to_pylist() == paged.json["rows"]
    assert requests > 4, "page after page"
    assert all(b"values_only" in body for body in asked[:requests])


@pytest.mark.usefixtures("_small")
async def test_given_a_page_of_many_parts_when_streamed_then_each_part_is_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is gathered: a stream of Arrow may have as many messages as it likes."""
    monkeypatch.setattr(api, "STREAM_BYTES", 1 << 20)
    async with running(feed_table(A, B, regions=2)) as bench:
        await _filled(bench)
        streamed = await get(bench, SCAN, ARROW)
        paged = await get(bench, SCAN)
        by_line = await get(bench, SCAN, "application/x-ndjson")

    batches = list(pa.ipc.open_stream(streamed.body))
    assert pa.Table.from_batches(batches).to_pylist() == paged.json["rows"]
    assert {batch.num_rows for batch in batches} <= {1, 2, 3, 4, 5}, "as the node cut them"
    assert [json.loads(row) for row in by_line.body.splitlines()] == paged.json["rows"]


async def test_given_parts_of_a_page_when_shown_then_only_other_types_are_copied() -> None:
    columns = Schema.of(feed_table(A, B, regions=1)).layout.columns
    parts = [
        pa.table(
            {
                "c3": pa.array(["x", "y"][:rows]),
                "c1": pa.array(range(rows), pa.int64()),
                "c2": pa.array(range(rows), pa.int32()),  # as it was before its type was changed
            }
        )
        for rows in (2, 1)
    ]

    page = shown_in_parts(columns, parts)

    assert page.schema == Layout.arrow_of(columns)
    assert page.to_pydict() == {"id": [0, 1, 0], "a": [0, 1, 0], "b": ["x", "y", "x"]}
    assert [batch.num_rows for batch in page.to_batches()] == [2, 1]
    for name, field in (("id", "c1"), ("b", "c3")):
        given = [part.column(field).chunk(0).buffers()[-1].address for part in parts]
        assert [chunk.buffers()[-1].address for chunk in page.column(name).chunks] == given
    assert shown_in_parts(columns, []).schema == page.schema


REFUSED: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "JSON has keys": ("application/json", {}),
    "an index is read by its entries": (ARROW, {"index": 1}),
}


@pytest.mark.parametrize("why", list(REFUSED))
async def test_given_a_form_that_has_keys_when_values_alone_are_asked_for_then_it_is_refused(
    why: str,
) -> None:
    accept, more = REFUSED[why]
    async with running(feed_table(A, B, regions=1)) as bench:
        head = {"table_id": bench.table.id, "schema_version": bench.table.schema_version}
        body = {**head, "epoch": 1, "values_only": True, **more}
        path = f"/node/v1/regions/{bench.table.regions[0].region_id}/scan"
        request = httpx.Request("POST", NODE_URL + path, json=body, headers={"accept": accept})

        answer = await bench.way.handle_async_request(request)

        assert answer.status_code == 422
        assert b"/values_only" in await answer.aread()


async def test_given_no_rows_when_values_are_asked_for_then_the_answer_has_their_columns() -> None:
    async with running(feed_table(A, B, regions=1)) as bench:
        streamed = await get(bench, SCAN, ARROW)

    found = pa.ipc.open_stream(streamed.body).read_all()
    assert (found.num_rows, found.schema.names) == (0, ["id", "a", "b"])
    assert node_batches.NEXT_KEY not in (found.schema.metadata or {})
