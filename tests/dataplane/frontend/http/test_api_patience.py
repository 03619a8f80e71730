"""A frontend that is told how long its client waits refuses before that, and says why."""

import asyncio

import httpx
import orjson
import pyarrow as pa
import pytest

from dataplane.frontend.http.app import build_app
from metasrv_base.errors import Unavailable
from metasrv_base.rows.arrow_parts import ArrowParts
from metasrv_base.wire.http.client import ANSWER_WITHIN_MS
from metasrv_base.wire.problem.problems import problem_of
from tests.dataplane.frontend.bench import Bench, running
from tests.dataplane.frontend.http.requests import ARROW, ROWS
from tests.metasrv.api.raw import JSON, Got, Sent, send

ROW = {"id": 1, "a": 1, "b": "x"}
SOON_MS = "300"


def arrow() -> bytes:
    batch = pa.RecordBatch.from_pylist([ROW])
    made = ArrowParts(batch.schema)
    return made.part(batch) + made.end()


WRITES = {
    "json": (ROWS, JSON, orjson.dumps({"op": "insert", "rows": [ROW]})),
    "arrow": (f"{ROWS}?op=insert", {"content-type": ARROW}, arrow()),
    "sql": ("/v1/sql", JSON, orjson.dumps({"text": "INSERT INTO t VALUES (1, 1, 'x')"})),
}


async def written(bench: Bench, kind: str, within_ms: str) -> Got:
    path, headers, body = WRITES[kind]
    sent = Sent("POST", path, {**headers, ANSWER_WITHIN_MS: within_ms}, [body])
    return await send(build_app(bench.service), sent)


def refused(bench: Bench) -> list[str]:
    """The node refuses every batch from now on. Returns the paths of those that came."""
    came: list[str] = []
    passed_on = bench.way.handle_async_request

    async def refuse(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/batch"):
            return await passed_on(request)
        came.append(request.url.path)
        status, headers, body = problem_of(Unavailable("storage-full"), request.url.path, "r")
        return httpx.Response(status, headers=headers, content=orjson.dumps(body))

    bench.way.handle_async_request = refuse  # type: ignore[method-assign]
    return came


@pytest.mark.parametrize("kind", WRITES)
async def test_given_a_region_that_refuses_when_its_client_gives_up_soon_then_it_is_told_why(
    kind: str,
) -> None:
    async with running() as bench:
        came = refused(bench)
        got = await written(bench, kind, SOON_MS)

    assert (got.status, got.json["code"]) == (507, "storage-full")
    assert len(came) > 1, "it tried again meanwhile"


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("text", ["0", "-5", "soon", "1.5", ""])
async def test_given_no_number_when_written_then_it_is_refused(kind: str, text: str) -> None:
    async with running() as bench:
        got = await written(bench, kind, text)

    assert (got.status, got.json["code"]) == (422, "invalid-request")


async def test_given_a_silent_region_when_its_client_gives_up_then_it_is_unknown() -> None:
    async with running() as bench:

        async def keep(request: httpx.Request) -> None:
            if request.url.path.endswith("/batch"):
                await asyncio.Event().wait()

        bench.way.meet = keep
        got = await written(bench, "json", SOON_MS)

    assert (got.status, got.json["code"]) == (504, "outcome-unknown")
