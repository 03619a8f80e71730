"""Raw puts that break one rule about what tables use."""

from keys.model.placing.placements import PlacedTable, PlacedTableKey
from keys.model.placing.tablespaces import GroupedTable, GroupedTableKey
from keys.model.tables import TableInfoKey
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import FLIGHTS, Cluster

INFO = TableInfoKey(FLIGHTS)


async def unknown_placement(at: Cluster) -> str:
    return await at.edit(INFO, format=2, placement_id=77)


async def unknown_profile(at: Cluster) -> str:
    return await at.edit(INFO, format=2, storage_profile="hot")


async def unknown_tablespace(at: Cluster) -> str:
    return await at.edit(INFO, format=2, tablespace_id=77)


async def placed_by_nobody(at: Cluster) -> str:
    key = PlacedTableKey(1024, FLIGHTS)
    await at.put(key, PlacedTable(table_id=FLIGHTS))
    return str(key)


async def grouped_by_nobody(at: Cluster) -> str:
    key = GroupedTableKey(1024, FLIGHTS)
    await at.put(key, GroupedTable(table_id=FLIGHTS))
    return str(key)


BREAKAGES = (
    Breakage("table-placing", unknown_placement),
    Breakage("table-placing", unknown_profile),
    Breakage("table-placing", unknown_tablespace),
    Breakage("placing-reverse", placed_by_nobody),
    Breakage("placing-reverse", grouped_by_nobody),
)
