"""The backup that is restored: of the cluster on which `metasrv check` is tested."""

import asyncio

import pytest

from keys.store.memory import MemoryKv
from tests.fakes.clock import FakeClock
from tests.metasrv.check.breaking.break_snapshots import catalogs, compacted, put_snapshots
from tests.metasrv.check.cluster import Cluster
from tests.metasrv.check.conftest import furnish
from tests.metasrv.restore.backups import Backup, backup_of


@pytest.fixture(scope="session")
def every_backup(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Backup]:
    """Made once: its regions' files take longer than all else."""
    clock = FakeClock()
    cluster = Cluster(MemoryKv(clock), tmp_path_factory.mktemp("nodes"), clock)

    async def made() -> dict[str, Backup]:
        await furnish(cluster)
        whole = await backup_of(cluster.kv)
        by_version = await catalogs(cluster)
        await put_snapshots(cluster, by_version[2], by_version[4])
        with_snapshots = await backup_of(cluster.kv)
        await compacted(cluster, 2, 4)
        return {
            "whole": whole,
            "with snapshots": with_snapshots,
            "compacted": await backup_of(cluster.kv),
        }

    backups = asyncio.run(made())
    for region in cluster.regions.values():
        region.close()
    return backups


@pytest.fixture(scope="session")
def backup(every_backup: dict[str, Backup]) -> Backup:
    return every_backup["whole"]
