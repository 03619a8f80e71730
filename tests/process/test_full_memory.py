"""A whole cluster whose only datanode has no memory left for rows: what clients of a frontend are
told."""

from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.connections import connect_async
from tests.dataplane.datanode.process.loads import FLAGS, rows_bytes
from tests.dataplane.datanode.process.program import traced
from tests.process.harness.rig import CALM, Rig, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
SLOW_FILES = "delay_enter=120000000"
"""`mkdir` takes as long as strace looks on, at most 120 s, and until then nothing is flushed:
longer than a statement may take."""
ROWS = 3


async def test_given_a_node_without_memory_when_written_through_a_frontend_then_503_until_there_is(
    tmp_path: Path,
) -> None:
    settings = PlaygroundOptions(
        tmp_path / "playground",
        datanodes=1,
        frontends=1,
        metasrv_flags=CALM,
        datanode_flags={name.replace("_", "-"): value for name, value in FLAGS.items()},
    )
    words = ["x" * int(0.35 * rows_bytes())] * ROWS
    async with (
        Playground(settings) as playground,
        httpx.AsyncClient(trust_env=False, timeout=60) as http,
        connect_async(playground.metasrv_urls, patience_ms=60_000) as db,
    ):
        await db.tables.create(table_spec("t", regions=1))
        rows = f"{playground.frontend_urls['fe-1']}/v1/tables/main/public/t/rows"

        async def insert() -> httpx.Response:
            body = {"op": "upsert", "rows": [{"id": ROWS, "word": "small"}]}
            return await http.post(rows, json=body)

        with traced(playground.pid("dn-1"), tmp_path / "calls", "mkdir,mkdirat", SLOW_FILES):
            large = pa.table({"id": pa.array(range(ROWS), pa.int64()), "word": words})
            await db.table("main.public.t").load(large, ROWS)
            refused = await insert()

        assert refused.status_code == 503, refused.text
        assert int(refused.headers["retry-after"]) >= 1
        problem = refused.json()
        assert problem["code"] == "not-ready"
        assert "memory is full" in problem["facts"]["reason"]

        async def is_done() -> bool:
            return (await insert()).status_code == 200

        await Rig(playground, http).until(is_done)
