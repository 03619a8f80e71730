"""Raw puts that break one rule about copies of regions."""

from keys.model.tables import TableInfoKey
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import FLIGHTS, Cluster


async def one_of_two_in_sync(at: Cluster) -> set[str]:
    info = await at.read(TableInfoKey(FLIGHTS))
    await at.alter(info.model_copy(update={"replicas": 2, "version": info.version + 1}))
    regions = [await at.route_of(FLIGHTS, number) for number in range(2)]
    return {f"region {region.region_id}" for region in regions}


async def one_of_three_required(at: Cluster) -> set[str]:
    info = await at.read(TableInfoKey(FLIGHTS))
    update = {"format": 3, "replicas": 3, "min_in_sync": 1, "version": info.version + 1}
    await at.alter(info.model_copy(update=update))
    return {f"{TableInfoKey(FLIGHTS)} {info.full_name}"}


BREAKAGES = (
    Breakage("copies-in-sync", one_of_two_in_sync),
    Breakage("copies-minimum", one_of_three_required),
)
