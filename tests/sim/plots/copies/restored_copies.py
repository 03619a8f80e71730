"""A cluster whose regions have two copies is lost, restored, and adopts its nodes.

The copy with all acknowledged rows leads each region, and the others are made anew.
"""

from dataclasses import replace

from keys.model.tables import RegionRoute
from tests.sim.checks.restore_invariants import Tables
from tests.sim.clients.ddl import Owner
from tests.sim.cluster.world import World
from tests.sim.length import Life
from tests.sim.plots.restored import RESTORED, Restored

RESTORED_COPIES = replace(RESTORED, name="restored-copies")
REPLICAS = 2
SETTLED_MS_MAX = 300_000


class RestoredCopies(Restored):
    def __init__(self, world: World, life: Life) -> None:
        super().__init__(world, life)
        for node in world.nodes:
            node.has_copies = True

    def _owner(self, name: str) -> Owner:
        owner = super()._owner(name)
        owner.replicas = REPLICAS
        return owner

    async def _settle(self) -> None:
        await self._over("copies", self._are_in_sync, SETTLED_MS_MAX)

    def _are_in_sync(self) -> bool:
        tables = Tables.of_store(self.world.kv)
        return all(
            _is_whole(region, tables.infos[table_id].replicas)
            for table_id, region in tables.regions()
        )


def _is_whole(region: RegionRoute, replicas: int) -> bool:
    return len(region.in_sync) == replicas == len(region.nodes)
