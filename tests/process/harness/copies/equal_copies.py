"""Whether the copies of a table's regions have the rows of their leaders, once nobody writes."""

from functools import partial

from metasrv.sdk.client import AsyncClient
from metasrv.sdk.rows.binding import Bound
from metasrv_base.errors import MetaError
from metasrv_base.rows.nodes import NodePools
from metasrv_base.wire.api.tables import RegionRouteBody
from metasrv_base.wire.node.batches import ChecksumRequest, ChecksumResult
from tests.process.harness.rig import Rig

READ_MS = 5_000
MAX_LAG_MS = 1_500
"""A copy knows the age of its rows to within a second, at best."""


async def unequal_copies(rig: Rig, db: AsyncClient, name: str) -> list[str]:
    """Returns the copies in sync whose rows are not those of their leader. Nobody may write, and
    nothing may move. A region without another copy in sync is a fault too: nothing was compared."""
    await rig.clock.sleep_ms(MAX_LAG_MS)  # from here on an answer has every acknowledged row
    bound = await db.table(name).binding.get()
    nodes, wrong = NodePools(), list[str]()
    try:
        for region in bound.regions.values():
            leader = await rig.until(partial(_summed, nodes, bound, region, None))
            if not region.copy_addresses:
                wrong.append(f"region {region.region_id} has no other copy in sync")
            for node in region.copy_addresses:
                copy = await rig.until(partial(_summed, nodes, bound, region, node))
                if copy != leader:
                    told = f"{copy} on {node}, {leader} on {region.leader}"
                    wrong.append(f"rows and checksum of region {region.region_id}: {told}")
    finally:
        await nodes.close()
    return wrong


async def _summed(
    nodes: NodePools, bound: Bound, region: RegionRouteBody, node: str | None
) -> tuple[int, str] | None:
    """Rows and checksum, of the leader or of the copy on *node*; None: it does not answer now."""
    wanted = ChecksumRequest(
        table_id=bound.layout.table_id,
        schema_version=bound.layout.schema_version,
        epoch=region.epoch,
        max_lag_ms=None if node is None else MAX_LAG_MS,
    )
    asked = region
    if node is not None:
        asked = region.model_copy(update={"address": region.copy_addresses[node]})
    try:
        found = await nodes.read(asked, "checksum", wanted, READ_MS, ChecksumResult)
    except MetaError:
        return None
    return found.rows, found.checksum
