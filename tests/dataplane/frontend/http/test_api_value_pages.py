"""A streamed scan asks regions for values alone; what it says is what pages with keys say."""

from collections.abc import Mapping

import httpx
import pyarrow as pa
import pytest

from dataplane.frontend.http import api
from dataplane.frontend.planning.row_input import Op
from dataplane.region.files import file_writer
from dataplane.region.format.parts import PartSize
from dataplane.region.reads import value_scan
from metasrv_base.wire.node import batches
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
    assert batches.NEXT_KEY not in (found.schema.metadata or {})
