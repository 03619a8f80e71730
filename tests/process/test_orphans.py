"""A node that was away while a table was dropped and purged comes back with the folder."""

import signal
from collections.abc import Iterable
from pathlib import Path

import pytest

from metasrv.sdk.client import AsyncClient
from metasrv_base.wire.api.cluster import OrphanList, QuarantinedFolder
from tests.process.harness.node_outages import PATIENT_MS, rows_of
from tests.process.harness.rig import running, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
ROWS = [{"id": id, "word": "kept"} for id in range(100)]
NODE = "dn-1"
GRACE_MS, RETENTION_MS = 1_000, 8_000


def folders(root: str, place: str) -> set[str]:
    """The folders of regions in `regions` or `quarantine`, by the names that they had."""
    path = Path(root) / place
    return {each.name.partition("@")[0] for each in path.iterdir()} if path.exists() else set()


def names_of(roots: Iterable[str]) -> set[str]:
    return {Path(root).name for root in roots}


async def orphans_of(db: AsyncClient) -> OrphanList:
    return await db.nodes.orphans(NODE)


async def test_given_a_table_purged_while_its_node_is_away_then_its_folder_goes_and_no_other(
    tmp_path: Path,
) -> None:
    """Into quarantine, where it stays for the retention, whoever leads; then it is deleted."""
    async with running(tmp_path, metasrvs=2) as rig, rig.client() as db:
        for name in ("gone", "kept"):
            await db.tables.create(table_spec(name, regions=6))
            await db.table(name).insert(ROWS, deadline_ms=PATIENT_MS)
        root = (await db.nodes.get(NODE)).root
        before = folders(root, "regions")
        await db.cluster.set_maintenance(True, "the node is away, and stays the leader", 3_600)
        await rig.kill(NODE)

        async def is_dead() -> bool:
            return (await db.nodes.get(NODE)).state == "dead"

        await rig.until(is_dead)
        await db.tables.drop("gone", wait_s=120)
        await db.tables.purge("its rows are not needed", "gone", wait_s=120)
        await db.settings.put("orphan_grace_ms", GRACE_MS)
        await db.settings.put("orphan_retention_ms", RETENTION_MS)
        await rig.restart(NODE)
        await db.cluster.set_maintenance(False)
        left = {each.root for each in (await orphans_of(db)).folders}

        async def quarantined() -> list[QuarantinedFolder]:
            return list((await orphans_of(db)).quarantined)

        held = await rig.until(quarantined)
        first = await rig.leader()
        await rig.kill(first, signal.SIGKILL)
        in_quarantine = folders(root, "quarantine")
        await rig.leader(other_than=first)

        async def is_deleted() -> bool:
            there = folders(root, "regions") | folders(root, "quarantine")
            return not there & names_of(left)

        await rig.until(is_deleted)
        rows = await rows_of(db, "kept")
        violations = await rig.check()
        agreement = await rig.agreement()

    assert left
    assert {each.root for each in held} <= left
    assert all(each.proof == "no-table" for each in held)
    assert in_quarantine
    assert in_quarantine <= names_of(left) < before
    assert folders(root, "regions") == before - names_of(left)
    assert sorted(row["id"] for row in rows) == [row["id"] for row in ROWS]
    assert violations == ()
    assert agreement.wrong == []
