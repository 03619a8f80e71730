"""The backup that is restored: of the cluster on which `metasrv check` is tested."""

import asyncio

import pytest

from keys.store.memory import MemoryKv
from tests.fakes.clock import FakeClock
from tests.metasrv.check.cluster import Cluster
from tests.metasrv.check.conftest import furnish
from tests.metasrv.restore.backups import Backup, backup_of


@pytest.fixture(scope="session")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Backup:
    """Made once: its regions' files take longer than all else."""
    clock = FakeClock()
    cluster = Cluster(MemoryKv(clock), tmp_path_factory.mktemp("nodes"), clock)

    async def made() -> Backup:
        await furnish(cluster)
        return await backup_of(cluster.kv)

    one = asyncio.run(made())
    for region in cluster.regions.values():
        region.close()
    return one
