"""truncate_table: every region begins anew in an empty root; rows from before never come back.

`cut` gives each region the next epoch and an empty root, on the node that leads it, or on another
one if that is gone or answers no orders. The leader closes the old region, and makes the empty one
behind fences in the old roots; leases of other nodes are waited for. When no node serves old rows
any more, one transaction sets all regions to `open`. The old folders are deleted last. Copies begin
anew beside their leader. The leader's answer suffices: a copy that does not answer becomes a
learner.
"""

from collections import defaultdict
from operator import not_

from pydantic import Field

from keys.commit.change import change, route_changed
from keys.commit.txn import Txn
from keys.model.records import Lock, Resource
from keys.model.tables import (
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableRoute,
    TableRouteKey,
)
from metasrv_base.wire.node.orders import CreateRegion
from procedures.context import Context
from procedures.kinds.tables.truncate_plan import Cut, NewHomes, cut_plan
from procedures.locking.locks import whole_table
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.copies.copy_cleanup import discard_copies, roots_of_copies
from procedures.steps.copies.copy_orders import CopyTarget, create_copy
from procedures.steps.copies.new_regions import NewTable, make_regions
from procedures.steps.open_and_publish import grant
from procedures.steps.placing import NodeRules
from procedures.steps.region_cleanup import (
    discard_roots,
    leader_is_gone,
    outwait_leases,
    roots_left,
)
from procedures.steps.requirements import require_same_table, require_version


class TruncateTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    led_by: tuple[str, ...] = ()
    """Nodes that were gone when regions were taken from them: their leases may be alive."""
    leavings: tuple[str, ...] = ()
    """`region_id root` pairs: folders to delete in the end. Empty: nothing has been cut yet."""
    copies_left: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """`region_id node root`: folders of copies, which their nodes delete in the end."""


async def cut(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """Publishes new roots. Rows acknowledged from here on are in them, or precede the truncate."""
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(name, info_key, key)
    again = bool(state.leavings or state.copies_left)
    if not again:
        require_same_table(context.client, name, snapshot.get(name))
        require_version(context.client, snapshot.must(info_key))
    route = snapshot.must(key)
    cuts = _cuts(snapshot.must(info_key), route, context, again=again)
    changed = tuple(region_cut.region for region_cut in cuts)
    txn = change(snapshot, route_changed(route, changed)) if changed else Txn()
    gone = {
        region_cut.before.leader
        for region_cut in cuts
        if region_cut.before.leader != region_cut.region.leader and not region_cut.is_promoted
    }
    new = state.model_copy(
        update={
            "led_by": tuple(sorted({*state.led_by, *gone})),
            "leavings": (
                *state.leavings,
                *(root for region_cut in cuts for root in region_cut.leaves),
            ),
            "copies_left": (
                *state.copies_left,
                *(copy for region_cut in cuts for copy in region_cut.copies_left),
            ),
        }
    )
    return Goto("outwait" if new.led_by else "create", new, txn)


def _cuts(info: TableInfo, route: TableRoute, context: Context, *, again: bool) -> tuple[Cut, ...]:
    catalog = context.ports.applied()
    rules = NodeRules.of(catalog.placing.placement_of(info), info.engine)
    homes = NewHomes(rules, catalog.partition_groups(info))
    return cut_plan(route.region_routes, context.ports.placement.nodes(), again=again, homes=homes)


async def outwait(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """Waits for the leases of leaders that are gone; the other leaders close by the order to
    create."""
    regions = (await _route(state, context)).region_routes
    await outwait_leases(context, state.led_by, [region.region_id for region in regions])
    return Goto("create", state)


async def create(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """Makes the empty regions, and opens all of them in one transaction, so that no reader sees
    a part of the old rows."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.must(info_key), snapshot.must(key)
    if leader_is_gone(context, route.region_routes) or _cuts(info, route, context, again=True):
        return Goto("cut", state)
    left = defaultdict(list, roots_left(state.leavings))
    copies_left = roots_of_copies(state.copies_left)

    def empty(target: CopyTarget) -> CreateRegion:
        region_id = target.region.region_id
        own = copies_left.get((region_id, target.node), [])
        return create_copy(target, [*left[region_id], *own] if target.is_leader else own)

    table = NewTable(info, route)
    (made,) = await make_regions(context, [table], empty, by_leader=True)
    update = {"state": RegionState.OPEN, "announced": True}
    changed = tuple(region.model_copy(update=update) for region in made.region_routes)
    return Goto("serve", state, change(snapshot, route_changed(route, changed)))


async def serve(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """Grants the leases of the regions. A node that has died since is left to a failover, which
    waits for the locks of this procedure: rows may have been acknowledged in the new roots."""
    alive = context.alive_nodes()
    regions = (await _route(state, context)).region_routes
    here = {r.region_id for r in regions if r.leader in alive}
    return Goto("discard", state, await grant(context, state.table_id, here))


async def discard(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """Has the old folders deleted. Those whose node is away stay, and are reported, as do those of
    a leader that has started again or lost its files: its failover waits for the locks of this
    procedure."""
    left = await discard_roots(context, state.table_id, state.leavings)
    left += await discard_copies(context, state.table_id, state.copies_left)
    full = f"{state.catalog}.{state.schema_name}.{state.name}"
    return Done(state, {"table_id": state.table_id, "name": full, "left_behind": left})


async def _route(state: TruncateTable, context: Context) -> TableRoute:
    key = TableRouteKey(state.table_id)
    return (await context.snapshot(key)).must(key)


def locks(state: TruncateTable) -> tuple[Lock, ...]:
    return whole_table(state.catalog, state.schema_name, state.name, state.table_id)


def resource(state: TruncateTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


TRUNCATE_TABLE = Kind(
    name="truncate_table",
    state=TruncateTable,
    steps={
        "cut": Step(cut, to=frozenset({"outwait", "create"})),
        "outwait": Step(outwait, to=frozenset({"create"}), waits=True),
        "create": Step(create, to=frozenset({"cut", "serve"})),
        "serve": Step(serve, to=frozenset({"discard"})),
        "discard": Step(discard),
    },
    no_return="cut",
    locks=locks,
    resource=resource,
    success=200,
)
