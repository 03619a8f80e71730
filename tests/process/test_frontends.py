"""Two frontends side by side: what one writes the other reads, and either may die."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from dataplane.frontend.main import EXIT_LEASE
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.connections import connect_async
from metasrv.service.state.feed_lines import line_of
from metasrv_base.wire.frontend.feed import SnapshotLine
from metasrv_base.wire.frontend.holders import HolderRegisterAnswer
from serving.launch import program
from tests.metasrv_base.wire.http.http_server import SILENCE, Reply, serving
from tests.process.harness.rig import CALM, Rig, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
UNKEPT = httpx.Limits(max_keepalive_connections=0)  # none is closed under a request
ROWS = [{"id": number, "word": f"w{number}"} for number in range(6)]


class Frontend:
    """The rows of one table through one frontend; 503 says that nothing was done: asked again."""

    def __init__(self, rig: Rig, id: str) -> None:
        self.rig = rig
        self.url = f"{rig.url(id)}/v1/tables/main/public/t"

    async def write(self, op: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        done: dict[str, Any] = await self.asked("POST", "/rows", json={"op": op, "rows": rows})
        return done

    async def rows(self) -> list[dict[str, Any]]:
        found = await self.asked("GET", "/scan")
        return sorted(found["rows"], key=lambda row: int(row["id"]))

    async def asked(self, method: str, path: str, **options: Any) -> Any:
        async def ask() -> httpx.Response | None:
            try:
                answer = await self.rig.http.request(method, self.url + path, **options)
            except httpx.ConnectError:
                return None
            return None if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE else answer

        answer: httpx.Response = await self.rig.until(ask)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()


def has_pandas(pid: int) -> bool:
    return "/pandas/" in Path(f"/proc/{pid}/maps").read_text()


async def test_given_two_frontends_when_one_dies_and_one_ends_then_each_serves_what_is_there(
    tmp_path: Path,
) -> None:
    settings = PlaygroundOptions(
        tmp_path / "playground", datanodes=1, frontends=2, metasrv_flags=CALM
    )
    async with (
        Playground(settings) as playground,
        httpx.AsyncClient(trust_env=False, limits=UNKEPT, timeout=60) as http,
        connect_async(playground.metasrv_urls, patience_ms=60_000) as db,
    ):
        rig = Rig(playground, http)
        document = playground.document

        async def holders_are(*expected: str) -> bool:
            found = await rig.told(f"{playground.metasrv_urls[0]}/v1/schema-leases")
            return [one["holder_id"] for one in found["holders"]] == [*expected]

        await db.tables.create(table_spec("t"))
        one, other = Frontend(rig, "fe-1"), Frontend(rig, "fe-2")
        await rig.until(lambda: holders_are("fe-1", "fe-2"))

        written = await one.write("insert", ROWS[:3])
        seen = await other.rows()
        heavy = [id for id, child in playground.children.items() if has_pandas(child.pid)]
        await playground.kill("fe-1", signal.SIGKILL)
        await db.table("t").insert(ROWS[3:])  # it is told of both, and passes over the dead one
        await other.write("update", [{"id": 0, "word": "new"}])
        await playground.restart("fe-1")
        after = await one.rows()
        await playground.kill("fe-2", signal.SIGTERM)
        await one.write("delete", [{"id": 5}])
        last = await one.rows()
        await rig.until(lambda: holders_are("fe-1"))
        ended = playground.children["fe-2"].returncode

    assert {id: entry.pid for id, entry in document.frontends.items()} == document.pids.frontend
    assert (written["rows"], written["schema_version"]) == (3, 1)
    assert seen == ROWS[:3]
    assert heavy == []
    assert after == [{"id": 0, "word": "new"}, *ROWS[1:]]
    assert last == after[:5]
    assert ended == 0


async def test_given_a_leader_that_falls_silent_when_the_lease_has_ended_then_it_exits_75(
    tmp_path: Path,
) -> None:
    """Whoever it asks says the same: a catalog, a lease, and then no word more."""
    catalog = SnapshotLine(version=1, tables=(), is_last=True)
    lease = HolderRegisterAnswer(
        cluster_id="c",
        term=1,
        lease_ms=1_000,
        acknowledge_ms=200,
        transaction_age_max_ms=500,
        catalog_version=1,
    )
    said = {"GET": Reply(body=line_of(catalog)), "POST": Reply(body=lease.model_dump())}
    async with serving(SILENCE, **said) as metasrv:
        flags = ("--frontend-id=fe-1", f"--metasrv={metasrv.url}")
        with (tmp_path / "log").open("wb") as log:
            frontend = await asyncio.create_subprocess_exec(
                *(*program("dataplane.frontend.main"), *flags),
                stdout=log,
                stderr=log,
            )
            try:
                code = await frontend.wait()
            finally:
                if frontend.returncode is None:
                    frontend.kill()

    assert code == EXIT_LEASE, (tmp_path / "log").read_text()
