"""truncate_table: every region begins anew in an empty root; rows from before never come back.

cut gives each region one epoch more and a root without rows, on the node that leads it, or on
another one if that is gone. The leader closes what it had open, and makes the empty region behind
fences in the old roots; old leases of nodes that are gone are waited out. Only when nobody serves
old rows any more, one transaction says of all regions that they are open. The old folders go last.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from keys.catalog.tables.partition_groups import Groups
from keys.commit.change import change, route_changed
from keys.commit.txn import Txn
from keys.model.placing.placements import NodeFilter
from keys.model.records import Lock, Resource
from keys.model.tables import (
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableRoute,
    TableRouteKey,
)
from metasrv_base.engines import LSM
from metasrv_base.wire.node.orders import CreateRegion
from procedures.context import Context
from procedures.locking.locks import whole_table
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.ports import NodeView
from procedures.steps.open_and_publish import grant
from procedures.steps.placing import ANY_NODE, place_in_groups, region_root
from procedures.steps.region_cleanup import (
    discard_roots,
    leader_is_gone,
    leaving,
    outwait_leases,
    roots_left,
)
from procedures.steps.region_orders import create_order, order_all
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


@dataclass(frozen=True, slots=True)
class NewHomes:
    """Rules by which regions whose leader is gone get new nodes."""

    engine: str = LSM
    node_filter: NodeFilter = ANY_NODE
    """The filter of the table's placement."""
    groups: Groups = field(default_factory=dict)
    """Partition groups of the regions of the table."""


ANYWHERE = NewHomes()


@dataclass(frozen=True, slots=True)
class Cut:
    """A region with a new, empty root."""

    region: RegionRoute
    before: RegionRoute

    @property
    def leaves(self) -> tuple[str, ...]:
        roots = (*self.before.borrows, self.before.root)
        return tuple(leaving(self.before, root) for root in roots)


def cut_plan(
    regions: Sequence[RegionRoute],
    nodes: Sequence[NodeView],
    *,
    again: bool,
    homes: NewHomes = ANYWHERE,
) -> tuple[Cut, ...]:
    """All of *regions*; *again*: only those whose leader is gone, before it was announced.

    Raises Unavailable("node-not-eligible") with the reason of every node if there is no room.
    """
    alive = {node.node_id: node for node in nodes if node.alive}
    gone = [region for region in regions if region.leader not in alive]
    groups = [homes.groups.get(region.number, {}) for region in gone]
    chosen = place_in_groups(nodes, groups, (), homes.engine, homes.node_filter)
    replacements = {region.region_id: node for region, node in zip(gone, chosen, strict=True)}
    return tuple(
        Cut(_anew(region, replacements.get(region.region_id) or alive[region.leader]), region)
        for region in regions
        if region.region_id in replacements or not again
    )


def _anew(region: RegionRoute, node: NodeView) -> RegionRoute:
    epoch = region.epoch + 1
    update = {
        "leader": node.node_id,
        "epoch": epoch,
        "state": RegionState.OPENING,
        "root": region_root(node, region.region_id, epoch),
        "announced": False,
        "borrows": (),
        "unannounced": (),
        "unverified": False,
    }
    return region.model_copy(update=update)


async def cut(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """Publishes new roots. Rows acknowledged from here on are in them, or precede the truncate."""
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(name, info_key, key)
    again = bool(state.leavings)
    if not again:
        require_same_table(context.client, name, snapshot.get(name))
        require_version(context.client, snapshot.must(info_key))
    route = snapshot.must(key)
    info, catalog = snapshot.must(info_key), context.ports.applied()
    homes = NewHomes(
        info.engine, catalog.placing.placement_of(info).node_filter, catalog.partition_groups(info)
    )
    nodes = context.ports.placement.nodes()
    cuts = cut_plan(route.region_routes, nodes, again=again, homes=homes)
    changed = tuple(region_cut.region for region_cut in cuts)
    txn = change(snapshot, route_changed(route, changed)) if changed else Txn()
    gone = {
        region_cut.before.leader
        for region_cut in cuts
        if region_cut.before.leader != region_cut.region.leader
    }
    new = state.model_copy(
        update={
            "led_by": tuple(sorted({*state.led_by, *gone})),
            "leavings": (
                *state.leavings,
                *(root for region_cut in cuts for root in region_cut.leaves),
            ),
        }
    )
    return Goto("outwait" if new.led_by else "create", new, txn)


async def outwait(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """Waits for the leases of leaders that are gone; the other leaders close by the order to
    create."""
    regions = (await _route(state, context)).region_routes
    await outwait_leases(context, state.led_by, [region.region_id for region in regions])
    return Goto("create", state)


async def create(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """All of them are open at once, or none: nobody reads half of the old rows."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    route = snapshot.must(key)
    if leader_is_gone(context, route.region_routes):
        return Goto("cut", state)
    left = roots_left(state.leavings)

    def empty(info: TableInfo, region: RegionRoute) -> CreateRegion:
        return create_order(info, region, replaces=left[region.region_id])

    answers = await order_all(context, snapshot.must(info_key), route.region_routes, empty)
    answers.must_all_succeed()
    update = {"state": RegionState.OPEN, "announced": True}
    changed = tuple(region.model_copy(update=update) for region in route.region_routes)
    return Goto("serve", state, change(snapshot, route_changed(route, changed)))


async def serve(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    """A node that has gone since is for a failover, which waits for our locks: rows may have been
    acknowledged in the new roots."""
    alive = context.alive_nodes()
    regions = (await _route(state, context)).region_routes
    here = {r.region_id for r in regions if r.leader in alive}
    return Goto("discard", state, await grant(context, state.table_id, here))


async def discard(state: TruncateTable, context: Context) -> Outcome[TruncateTable]:
    left = await discard_roots(context, state.table_id, state.leavings)
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
