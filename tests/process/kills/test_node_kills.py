"""Done when (d): a datanode killed under writers, its disk removed afterwards, or before."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from metasrv_base.errors import Unavailable
from tests.process.harness.failover_stages import SPARK, killed_at
from tests.process.harness.node_outages import node_killed, rows_of
from tests.process.harness.rig import Rig, running, table_spec
from tests.process.harness.writer import Writer, wrong_rows

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(1_200)]


async def test_given_writers_when_node_and_spark_are_killed_then_no_row_needs_the_old_disk(
    tmp_path: Path,
) -> None:
    """Every stage of the failover is in the long form, scripts/chaos.py."""
    seen = await node_killed(tmp_path, beside=partial(killed_at, stages=(SPARK,)))

    print(seen)
    assert seen.wrong == ()


async def test_given_a_dead_node_without_its_disk_when_taken_over_then_it_is_lost_until_it_is_back(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as rig, rig.client() as db:
        await db.tables.create(table_spec("t", regions=1))
        writer = Writer(db.table("t"), statement_ms=60_000)
        for _ in range(10):
            await writer.write()
        dead = (await db.tables.route("t")).regions[0].leader
        assert dead is not None
        await rig.kill(dead)
        root = rig.playground.datanode_roots[dead]
        aside = root.rename(root.with_name("aside"))
        route = await rig.until(lambda: in_route(rig, "lost"))
        seen = await signs_of_loss(rig, route["region_id"])
        with pytest.raises(Unavailable, match="region-lost"):
            await writer.table.insert([{"id": -1, "word": "nowhere"}])
        shutil.copytree(aside, root, dirs_exist_ok=True)
        await rig.until(lambda: in_route(rig, "open"))
        await writer.write()
        rows = await rows_of(db, "t")
        agreement = await rig.agreement()

    assert (seen["region"], seen["procedure"]) == ("lost", "region-lost")
    assert 'metasrv_regions{state="lost"} 1.0' in seen["metrics"]
    assert set(writer.told.values()) == {"ok"}
    assert wrong_rows(rows, [writer]) == []
    assert agreement.wrong == []


async def in_route(rig: Rig, state: str) -> dict[str, Any] | None:
    found = await rig.ask(f"{rig.urls[0]}/v1/catalogs/main/schemas/public/tables/t/route")
    regions = found["regions"] if found else ()
    return next((region for region in regions if region["state"] == state), None)


async def signs_of_loss(rig: Rig, region_id: str) -> dict[str, Any]:
    """Wherever a person would look."""
    region = await rig.told(f"{rig.urls[0]}/v1/regions/{region_id}")

    async def tried() -> list[Any]:
        found = await rig.told(f"{rig.urls[0]}/v1/procedures", kind="failover_table")
        errors = [one["error"] for one in found["procedures"]]
        return [error for error in errors if error and region_id in str(error["facts"])]

    return {
        "region": region["state"],
        "procedure": (await rig.until(tried))[0]["code"],
        "metrics": (await rig.http.get(rig.urls[0] + "/metrics")).text,
    }
