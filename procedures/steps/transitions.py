"""Transitions of a table's elements, one after the other, none before the last is over (P6).

A transition makes schema version n+1 of n. When it is published, holders use n and n+1; nobody may
use n-1 any more, or three versions would meet. So, in this order:

1. `settle`: no holder uses a version below n (SchemaSync), then the floor n is written to
   TableInfo. It is there before any region is ordered, so that a region that is opened meanwhile
   is opened with it.
2. `publish`: every region raises its floor to n, durably, and learns what n+1 is, so that it takes
   what names n+1 the moment that is published; then version n+1 is written. The write compares
   TableInfo and TableRoute as they were when the regions were ordered: a failover in between
   orders anew.

Nothing of this is remembered by a leader: a new one finds a floor below the version, and waits
again (docs/online-change.md, case 33); or finds it equal, and then everybody had been waited
for. docs/decisions/0088 has the trace of one change.
"""

from collections.abc import Sequence

from keys.commit.change import change
from keys.commit.txn import Snapshot, Txn
from keys.model.log import TableAltered
from keys.model.tables import (
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableRoute,
    TableRouteKey,
)
from metasrv_base.errors import Unavailable
from procedures.context import Context
from procedures.elements.transition_notes import published
from procedures.steps.region_orders import OrderAnswers, not_gone, order_all, schema_order


def is_settled(info: TableInfo) -> bool:
    """Whether the next version may be published: nobody uses one before this."""
    return info.schema_floor == info.schema_version


async def settle(context: Context, snapshot: Snapshot, info: TableInfo) -> Txn:
    """Waits until nobody uses a version before the one that is published. The floor to commit."""
    await context.drained(info.table_id, info.schema_version)
    context.ports.schema_sync.must_be_sound(info.table_id)
    raised = info.model_copy(
        update={"schema_floor": info.schema_version, "version": info.version + 1}
    )
    return change(snapshot.only(TableInfoKey(info.table_id)), TableAltered(info=raised))


async def read_table(context: Context, table_id: int) -> tuple[Snapshot, TableInfo, TableRoute]:
    info_key, key = TableInfoKey(table_id), TableRouteKey(table_id)
    snapshot = await context.snapshot(info_key, key)
    return snapshot, snapshot.must(info_key), snapshot.must(key)


async def publish(
    context: Context, snapshot: Snapshot, info: TableInfo, route: TableRoute, new: TableInfo
) -> Txn:
    """Makes every region ready for *new*, which follows on *info*. The transition to commit.

    *new* differs by the states of its elements and by what comes with them; its versions are
    counted here. Raises Unavailable while a region cannot be told.
    """
    assert is_settled(info), "a version that may be in use is two behind"
    context.ports.schema_sync.must_be_sound(info.table_id)
    update = {"schema_version": info.schema_version + 1, "version": info.version + 1}
    following = new.model_copy(update=update)
    clock = context.ports.clock
    began_ms = clock.mono_ms()
    await tell(context, following, route, before=info)
    regions, told_ms = len(route.region_routes), clock.mono_ms() - began_ms
    context.note(published(info, following, regions, told_ms))
    return change(snapshot, TableAltered(info=following))


async def tell(
    context: Context, info: TableInfo, route: TableRoute, *, before: TableInfo | None = None
) -> OrderAnswers:
    """Orders every region to take *info* and to raise its floor.

    *before*: the version that is still in use beside it; what only that one has stays known.
    A region in failover is waited for, one that is lost is said: the step is tried again. One that
    is lost for good is left out: it serves nobody until it is created anew.
    """
    regions = not_gone(info, route)
    _must_be_open(regions)

    full_info = info if before is None else with_leaving(info, before)
    dead = () if before is not None else dead_indexes(info)
    answers = await order_all(
        context,
        full_info,
        regions,
        lambda table, region: schema_order(table, region, dead),
    )
    answers.must_all_succeed()
    return answers


def with_leaving(info: TableInfo, before: TableInfo) -> TableInfo:
    """*info* and what only *before* has: its holders still write it."""
    columns = {column.id for column in info.columns}
    indexes = {index.id for index in info.indexes}
    return info.model_copy(
        update={
            "columns": (*info.columns, *(c for c in before.columns if c.id not in columns)),
            "indexes": (*info.indexes, *(i for i in before.indexes if i.id not in indexes)),
        }
    )


def dead_indexes(info: TableInfo) -> tuple[int, ...]:
    """Ids that were taken, of indexes that are gone."""
    living = {index.id for index in info.indexes}
    return tuple(index_id for index_id in range(1, info.next_index_id) if index_id not in living)


def _must_be_open(regions: Sequence[RegionRoute]) -> None:
    lost = _in_state(regions, RegionState.LOST)
    if lost:
        raise Unavailable("region-lost", regions=lost)
    opening = _in_state(regions, RegionState.OPENING)
    if opening:
        raise Unavailable("not-ready", what=f"regions {', '.join(opening)}", reason="being opened")


def _in_state(regions: Sequence[RegionRoute], state: RegionState) -> list[str]:
    return sorted(region.region_id for region in regions if region.state is state)
