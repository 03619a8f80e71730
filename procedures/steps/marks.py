"""Marks in the regions of a table: moments at which a procedure reads all rows, region by region.

A mark bears the procedure's id, is durable, and follows its region through failovers. It is opened
behind the floor, so whoever writes rows that it does not show knows what the procedure is about.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from keys.model.tables import RegionRoute, TableInfo, TableRoute
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import NotFound, Unavailable
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.orders import SetSchema
from procedures.context import Context
from procedures.steps.region_orders import (
    NODES_AT_ONCE_MAX,
    Marks,
    is_gone,
    not_gone,
    order_all,
    schema_order,
)
from procedures.steps.transitions import read_table, tell


async def open_marks(
    context: Context, info: TableInfo, route: TableRoute
) -> tuple[RegionRoute, ...]:
    """The regions that had rows when the floor took hold: each has a mark now. The others have
    none: whatever they hold was written by those who know *info*.

    Raises Unavailable while a region cannot be told, as `tell`. Again: the marks stand.
    """
    answers = await tell(context, info, route)
    floors = {region_id: result.floor_version for region_id, result in answers.results.items()}
    with_rows = tuple(region for region in route.region_routes if floors.get(region.region_id))
    await _order(context, info, with_rows, Marks(opens=context.procedure))
    return with_rows


async def mark_everywhere(context: Context, info: TableInfo, route: TableRoute) -> None:
    """Each region has a mark now, also one without rows. Again: the marks stand. Raises Unavailable
    `region-lost` where a region is lost for good: nobody can read all rows of the table."""
    must_have_rows(info, route)
    await _order(context, info, route.region_routes, Marks(opens=context.procedure))


async def reserve_versions(
    context: Context, info: TableInfo, route: TableRoute
) -> Mapping[str, int]:
    """Each region has a mark now, at a version that no row of it bears: by region id. Again: the
    marks stand, and the versions are the same. Raises as `mark_everywhere`."""
    must_have_rows(info, route)

    def make(table: TableInfo, region: RegionRoute) -> SetSchema:
        order = schema_order(table, region, marks=Marks(opens=context.procedure))
        return order.model_copy(update={"reserves_version": True})

    answers = await order_all(context, info, route.region_routes, make)
    answers.must_all_succeed()
    versions = {region_id: result.floor_version for region_id, result in answers.results.items()}
    return {region_id: version for region_id, version in versions.items() if version is not None}


def must_have_rows(info: TableInfo, route: TableRoute) -> None:
    gone = [region.region_id for region in route.region_routes if is_gone(info, region)]
    if gone:
        raise Unavailable("region-lost", regions=gone)


async def close_marks(context: Context, table_id: int) -> None:
    """Closes the marks that the procedure may have opened; idempotent."""
    _, info, route = await read_table(context, table_id)
    await _order(context, info, not_gone(info, route), Marks(closes=(context.procedure,)))


async def snapshots(context: Context, regions: Sequence[RegionRoute]) -> Mapping[str, Snapshot]:
    """Returns the snapshot of each region's rows as of its mark, by region id."""
    calls = [partial(snapshot_of, context, region) for region in regions]
    results = await fan_out(calls, at_once=NODES_AT_ONCE_MAX)
    return {region.region_id: snapshot for region, snapshot in zip(regions, results, strict=True)}


async def snapshot_of(context: Context, region: RegionRoute, *, whole: bool = False) -> Snapshot:
    """Returns the snapshot of a region's rows as of its mark; *whole* adds the entries of all
    indexes, also of unknown ones."""
    nodes = context.ports.nodes
    with context.waiting_for("node", region.leader):
        return await nodes.snapshot(region.leader, region.region_id, context.procedure, whole=whole)


async def current_snapshot(
    context: Context, region: RegionRoute, *, whole: bool = False
) -> Snapshot:
    """Returns what `snapshot_of` does. Raises Unavailable for a region that has just left that
    node."""
    try:
        return await snapshot_of(context, region, whole=whole)
    except NotFound as error:
        reason = "it has another leader by now"
        raise Unavailable("not-ready", what=f"region {region.region_id}", reason=reason) from error


async def _order(
    context: Context, info: TableInfo, regions: Sequence[RegionRoute], marks: Marks
) -> None:
    def make(table: TableInfo, region: RegionRoute) -> SetSchema:
        return schema_order(table, region, marks=marks)

    answers = await order_all(context, info, regions, make)
    answers.must_all_succeed()
