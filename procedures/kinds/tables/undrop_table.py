"""undrop_table: restores a dropped table, with every region one epoch higher.

Regions whose node is gone go through failover before the undrop ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from keys.catalog.catalog import Catalog
from keys.model.records import Lock, Resource
from keys.model.records import ProcedureOutcome as Ended
from keys.model.removed import RemovedTableNameKey, RemovedTableRouteKey
from keys.model.tables import RegionRoute, RegionState, TableInfoKey, TableNameKey, TableRouteKey
from keys.value import is_none
from procedures.commands.command import change_of
from procedures.commands.table_commands import UndropTableCommand
from procedures.commands.table_placing import TablePlacingNames
from procedures.context import Context
from procedures.kinds.failover.failover_plan import needs_another
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.locking.locks import placing_of_table, whole_table
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.ports import NodeView
from procedures.steps.open_and_publish import grant, open_and_announce
from procedures.steps.paged_children import rest_before_again
from procedures.steps.region_orders import not_gone
from procedures.tenant_claim import TenantClaim


class UndropTable(ProcedureState):
    format: ClassVar[int] = 2

    table_id: int
    catalog: str
    schema_name: str
    old_name: str
    new_name: str
    schema_id: int | None = None
    """Id of the schema that the name resolved to. It is None if a server of an older version
    submitted the procedure."""
    placement: str | None = Field(default=None, exclude_if=is_none)
    """Name of its placement at submit, if it uses more than every table does."""
    tablespace: str | None = Field(default=None, exclude_if=is_none)
    """Name of its tablespace at submit; None: `default`."""
    region_ids: tuple[str, ...] = ()
    moves: dict[str, str] = Field(default_factory=dict)
    """Node that is gone -> id of the child that fails its regions over."""
    failed: int = 0
    """Times in a row that children have ended and left a region with its node."""


async def publish(state: UndropTable, context: Context) -> Outcome[UndropTable]:
    """Moves the removed keys back under the table's name, in one transaction."""
    name = (state.catalog, state.schema_name)
    command = UndropTableCommand(
        RemovedTableNameKey(*name, state.old_name, state.table_id),
        TableNameKey(*name, state.new_name),
        state.schema_id,
        TablePlacingNames(state.placement, state.tablespace),
    )
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    route = snapshot.must(RemovedTableRouteKey(state.table_id)).route
    region_ids = tuple(r.region_id for r in route.region_routes)
    return Goto("open", state.model_copy(update={"region_ids": region_ids}), txn)


async def open_regions(state: UndropTable, context: Context) -> Outcome[UndropTable]:
    """Opens the regions. Those on nodes that are gone fail over first, also if a node goes, or
    starts again and needs another epoch, meanwhile. Those of a volatile engine are lost: their rows
    ended when the drop closed them."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    route = snapshot.must(key)
    nodes = context.ports.placement.nodes()
    living = not_gone(snapshot.must(info_key), route)
    closed = [region for region in living if region.state is not RegionState.OPEN]
    if gone := _to_move(closed, nodes):
        moves = {node: context.ports.ids.procedure_id() for node in sorted(gone)}
        return Goto("fail_over", state.model_copy(update={"moves": moves}))
    announcement = await open_and_announce(context, state.table_id, {r.region_id for r in closed})
    return Goto("open" if announcement.closed else "serve", state, announcement.txn)


async def fail_over(state: UndropTable, context: Context) -> Outcome[UndropTable]:
    """Submits a failover as a child for each node that is gone, and waits for the children.

    A child that failed left its regions closed: `open` sees them, and another child is made, after
    a pause that grows while they fail.
    """
    if state.failed:
        await rest_before_again(context, state.failed)
    key = TableRouteKey(state.table_id)
    route = (await context.snapshot(key)).must(key)
    to_move = _to_move(route.region_routes, context.ports.placement.nodes())
    begun = []
    for node, child in state.moves.items():
        led = tuple(to_move.get(node, ()))
        if not led:  # the child has rerouted them, before a crash of ours, or the node is back
            begun += [child] if await _is_begun(child, context) else []
            continue
        begun.append(child)
        move = FailoverTable(
            table_id=state.table_id,
            name=f"{state.catalog}.{state.schema_name}.{state.new_name}",
            source=node,
            region_ids=led,
            reason="undrop",
        )
        await context.children.submit(child, FAILOVER_TABLE.name, move.model_dump(mode="json"))
    with context.waiting_for("child", ", ".join(begun)):
        ends = await context.children.wait(begun)
    done = all(end.outcome is Ended.SUCCEEDED for end in ends)
    failed = 0 if done else state.failed + 1
    return Goto("open", state.model_copy(update={"moves": {}, "failed": failed}))


def _to_move(regions: Iterable[RegionRoute], nodes: Sequence[NodeView]) -> dict[str, list[str]]:
    """Ids of the regions that need a failover, by the node that leads them."""
    alive = {node.node_id for node in nodes if node.alive}
    to_move: dict[str, list[str]] = {}
    for region in regions:
        if region.leader not in alive or needs_another(region, nodes):
            to_move.setdefault(region.leader, []).append(region.region_id)
    return to_move


async def _is_begun(child: str, context: Context) -> bool:
    under_way = await context.children.under_way()
    return child in under_way or await context.children.end_of(child) is not None


async def serve(state: UndropTable, context: Context) -> Outcome[UndropTable]:
    """Grants the leases of the regions. A node that has died since is left to a failover of its
    own, which waits for the locks of this procedure."""
    key = TableRouteKey(state.table_id)
    route = (await context.snapshot(key)).must(key)
    alive = context.alive_nodes()
    here = {r.region_id for r in route.region_routes if r.leader in alive}
    txn = await grant(context, state.table_id, here)
    full = f"{state.catalog}.{state.schema_name}.{state.new_name}"
    return Done(state, {"table_id": state.table_id, "name": full}, txn)


def locks(state: UndropTable) -> tuple[Lock, ...]:
    return (
        *whole_table(state.catalog, state.schema_name, state.new_name, state.table_id),
        *placing_of_table(state.catalog, state.placement, state.tablespace),
    )


def resource(state: UndropTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.new_name)


def failovers(stored: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(stored.get("moves", {}).values())


def claims(state: UndropTable, catalog: Catalog) -> tuple[TenantClaim, ...]:
    table = catalog.tables.get(state.table_id)
    regions = 0 if table is None else len(table.route.region_routes)
    return (TenantClaim(state.catalog, {state.table_id: regions}),)


UNDROP_TABLE = Kind(
    name="undrop_table",
    state=UndropTable,
    steps={
        "publish": Step(publish, to=frozenset({"open"})),
        "open": Step(open_regions, to=frozenset({"open", "fail_over", "serve"})),
        "fail_over": Step(fail_over, to=frozenset({"open"}), waits=True),
        "serve": Step(serve),
    },
    no_return="publish",
    locks=locks,
    resource=resource,
    success=200,
    shown_children=failovers,
    claims=claims,
)
