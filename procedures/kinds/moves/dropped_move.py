"""The state of a move of a region of a dropped table, and what its steps have in common."""

from collections.abc import Sequence
from functools import partial
from operator import is_

from pydantic import Field

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import CopyRole, RegionRoute, TableInfo, TableInfoKey, TableRouteKey
from metasrv_base.errors import Unavailable
from procedures.context import Context
from procedures.kinds.failover.failover_plan import living_members, needs_epoch
from procedures.kinds.failover.next_leader import led_by
from procedures.kinds.moves.copy_move import root_on
from procedures.machine import Done, ProcedureState
from procedures.steps.copies.copy_orders import (
    answered,
    close_copy,
    in_any_case,
    living,
    open_copy,
    order_copies,
    targets_of,
)
from procedures.steps.copies.copy_routes import must_have_region
from procedures.steps.copies.dropped_regions import DroppedRegion, dropped_region


class MoveDropped(ProcedureState):
    table_id: int
    name: str
    """Full name when it was dropped."""
    dropped_by: str
    """The drop, by its procedure: a table that was undropped and dropped again is another matter.
    """
    region_id: str
    from_node: str
    root: str
    """The root of the copy that is to go."""
    to_node: str
    reason: str
    to_root: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The root of the copy at the destination; None: not named yet."""
    replaces: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The root of a learner of the destination, in whose place the copy comes."""
    is_added: bool = Field(default=False, exclude_if=partial(is_, False))
    """Whether this move has added that copy."""

    @classmethod
    def of(
        cls, table: CatalogTable, region: RegionRoute, nodes: tuple[str, str], reason: str
    ) -> "MoveDropped":
        """The move of a region's copy between two *nodes*, the source first."""
        assert table.dropped_by is not None
        root = root_on(region, nodes[0])
        assert root is not None
        return cls(
            table_id=table.info.table_id,
            name=table.info.full_name,
            dropped_by=table.dropped_by,
            region_id=region.region_id,
            from_node=nodes[0],
            root=root,
            to_node=nodes[1],
            reason=reason,
        )


async def open_woken(dropped: DroppedRegion, context: Context) -> RegionRoute | None:
    """Returns None once the leader has opened the region, and the region under another copy of the
    set where the leader has lost its files: nobody fails over a region of a dropped table. Raises
    Unavailable otherwise. Copies that were not reached are told again while the move waits."""
    info, region = dropped.info, dropped.region
    targets = list(targets_of(info, [region]))
    here = living(targets, context.alive_nodes())
    answers = await order_copies(context, here, open_copy, answered(targets[0]))
    failed = answers.failed()
    if region.region_id in answers.results and region.region_id not in failed:
        return None
    is_lost = failed.get(region.region_id) == "region-lost"
    if is_lost and (others := living_members(region, context.ports.placement.nodes())):
        return led_by(region, others[0], former=CopyRole.LEARNER)
    code = "region-lost" if is_lost else "not-ready"
    facts = {"regions": failed, "nodes": sorted(answers.silent)}
    raise Unavailable(code, what=f"the leader {region.leader}", **facts)


def has_started_again(region: RegionRoute, context: Context) -> bool:
    """Whether the leader has started again since, and opens the region at a higher epoch only."""
    return needs_epoch(region, context.ports.placement.nodes())


def is_needed(state: MoveDropped, region: RegionRoute, context: Context) -> bool:
    """Whether the added copy stays when the move is undone: it leads, or it is in sync and another
    member of the set is on a node that is not alive, whose disk may be lost."""
    others = {node for node in region.in_sync if node != state.to_node}
    is_in_sync = state.to_node in region.in_sync
    return region.leader == state.to_node or (is_in_sync and not others <= context.alive_nodes())


def must_be_alive(state: MoveDropped, context: Context) -> None:
    """Raises Unavailable unless the destination lives."""
    if state.to_node not in context.alive_nodes():
        raise Unavailable("node-not-eligible", reasons={state.to_node: "not alive"})


async def tell_nodes(state: MoveDropped, context: Context) -> None:
    """Tells the nodes which copies there are. What they answer changes nothing here."""
    dropped = await read_dropped(state, context)
    if dropped is not None:
        targets = targets_of(dropped.info, [dropped.region])
        here = living(targets, context.alive_nodes())
        await order_copies(context, here, open_copy, in_any_case)


def applied_dropped(state: MoveDropped, context: Context) -> RegionRoute | None:
    """The region as this leader has applied it; None: the table is not dropped any more."""
    table = context.ports.applied().tables.get(state.table_id)
    if table is None or table.dropped_by != state.dropped_by:
        return None
    return must_have_region(table.route, state.region_id)


async def close_woken(dropped: DroppedRegion, context: Context) -> None:
    """Raises Unavailable unless every living node with a copy has closed it."""
    targets = living(targets_of(dropped.info, [dropped.region]), context.alive_nodes())
    (await order_copies(context, targets, close_copy)).must_all_succeed()


async def read_dropped(state: MoveDropped, context: Context) -> DroppedRegion | None:
    """The region as it is stored; None: the table is not dropped any more, or by another drop."""
    return await dropped_region(context, state.table_id, state.region_id, state.dropped_by)


async def read_anywhere(
    state: MoveDropped, context: Context
) -> tuple[TableInfo, RegionRoute] | None:
    """The region of a table that lives again, or was dropped again. None: it is gone."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        again = await dropped_region(context, state.table_id, state.region_id)
        return None if again is None else (again.info, again.region)
    named = (region for region in route.region_routes if region.region_id == state.region_id)
    region = next(named, None)
    return None if region is None else (info, region)


def moved(
    state: MoveDropped, region: RegionRoute | None, stays: Sequence[str]
) -> Done[MoveDropped]:
    """The end of the move. *region* None: the table is not dropped any more, or is gone. *stays*:
    folders that were not deleted."""
    result = {
        "region_id": state.region_id,
        "from": state.from_node,
        "to": state.to_node,
        "moved": region is not None and state.root not in region.roots,
        "stays": list(stays),
    }
    return Done(state, result)
