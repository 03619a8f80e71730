"""create_table: makes every region, then publishes name, info, route and reverse index at once.

Ids and nodes are chosen before submit, so a create costs two writes: submit and commit. The table
is not visible before the commit; an undo leaves nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import Field

from keys.catalog.catalog import Catalog
from keys.commit.change import change
from keys.commit.txn import NOTHING, Txn
from keys.model.cluster import DATANODE, NodeKey
from keys.model.records import Lock, Resource
from keys.model.tables import COPIES_FORMAT, RegionRoute, TableInfo, TableInfoKey, TableRoute
from keys.value import is_none
from metasrv_base.elements.graphs import TABLE
from metasrv_base.errors import Conflict, Corrupt, Unavailable
from procedures.commands.table_commands import CreateTableCommand
from procedures.commands.table_placing import TablePlacingNames
from procedures.context import Context
from procedures.locking.locks import placing_of_table, whole_table
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.copies.copy_orders import (
    close_copy,
    delete_copies,
    discard_copy,
    living,
    order_copies,
    targets_of,
)
from procedures.steps.copies.new_regions import NewTable, drop_new_regions, make_regions
from procedures.steps.copies.new_routes import elsewhere, hindered
from procedures.steps.region_cleanup import outwait_leases
from procedures.steps.region_orders import (
    Suffices,
    answered_by_all_that_do,
    create_order,
    order_all,
)
from procedures.tenant_claim import TenantClaim


class CreateTable(ProcedureState):
    """The table as it will be published, whole."""

    info: TableInfo
    route: TableRoute
    if_not_exists: bool = False
    """A table of that name that is the same is success, and nothing is changed."""
    placement: str | None = Field(default=None, exclude_if=is_none)
    """Name of its placement; None: it uses no more of the default one than every table does."""
    tablespace: str | None = Field(default=None, exclude_if=is_none)
    """Name of its tablespace; None: `default`."""

    @property
    def placing(self) -> TablePlacingNames:
        return TablePlacingNames(self.placement, self.tablespace)


async def create(state: CreateTable, context: Context) -> Outcome[CreateTable]:
    """Makes the regions on their nodes, then publishes the table in one transaction. Makes nothing
    if `if_not_exists` finds the table. Regions that cannot be made, since their nodes have died
    or answer no orders, are placed on others first."""
    info, route = state.info, state.route
    command = CreateTableCommand(info, route, state.if_not_exists, state.placing)
    snapshot = await context.known_snapshot(*command.keys())
    bearer = snapshot.get(command.name_key)
    if bearer is not None and state.if_not_exists:
        snapshot = await context.snapshot(*command.keys(), TableInfoKey(bearer.table_id))
    entries = command.plan(snapshot)
    if bearer is not None and not entries:  # it was taken when the lock was granted: no region made
        return Done(state, {"table_id": bearer.table_id, "name": info.full_name})
    if is_of_another(state, context):  # a dropped one: its regions are on their nodes still
        raise Corrupt(table_id=info.table_id, reason="a new table has the id of another")
    left = hindered(route, context.answering_nodes())
    if left and (moved := await _elsewhere(state, left, context)) is not None:
        return moved
    made = route
    if route.format < COPIES_FORMAT:
        answers = await order_all(
            context, info, route.region_routes, create_order, _answered_or_dead(route, context)
        )
        answers.must_all_succeed()
    else:
        (made,) = await make_regions(context, [NewTable(info, route)])
        entries = replace(command, route=made).plan(snapshot)
    txn = change(snapshot, *entries).also(await while_registered((made,), context))
    return Done(state, {"table_id": info.table_id, "name": info.full_name}, txn)


def _answered_or_dead(route: TableRoute, context: Context) -> Suffices | None:
    """Every leader has answered, or never will: then its regions are placed on other nodes. None
    for one leader, which is waited for as long as an order may take: so a small create costs no
    task."""
    leaders = {region.leader for region in route.region_routes}
    return answered_by_all_that_do(context, leaders) if len(leaders) > 1 else None


async def _elsewhere(
    state: CreateTable, left: Sequence[RegionRoute], context: Context
) -> Goto[CreateTable] | None:
    """The regions *left* are to be made on other nodes. Those that answer delete what they have
    made of them; not by an order to drop, behind which a node takes the region no more. The order
    to create brings a lease, which is waited out at the others. None: no other node can take them,
    and the nodes that do not answer live, and may answer again.

    Raises Unavailable("node-not-eligible").
    """
    info, route = state.info, state.route
    try:
        changed = elsewhere(info, route, context.ports.applied(), context.ports.placement.nodes())
    except Unavailable:
        if hindered(route, context.alive_nodes()):
            raise
        return None
    able, targets = context.answering_nodes(), list(targets_of(info, left))
    here = living(targets, able)
    (await order_copies(context, here, close_copy)).must_all_succeed()
    await delete_copies(context, here, discard_copy)
    silent = {region.leader for region in left} - able
    await outwait_leases(context, sorted(silent), [region.region_id for region in left])
    return Goto("create", state.model_copy(update={"route": changed}))


async def while_registered(routes: Iterable[TableRoute], context: Context) -> Txn:
    """Compares the registrations of those nodes of *routes* that are dead: such a node may be
    removed, and nobody fails over the regions of a removed one, or replaces its copies. One that is
    alive is removed later than this transaction, and its routes refuse that.

    Raises Conflict `node-not-eligible`.
    """
    nodes = set[str]()
    for route in routes:
        for region in route.region_routes:
            nodes.add(region.leader)
            for copy in region.copies:
                nodes.add(copy.node)
    dead = nodes - context.alive_nodes()
    if not dead:
        return NOTHING
    keys = [NodeKey(DATANODE, node) for node in sorted(dead)]
    snapshot = await context.snapshot(*keys)
    for key in keys:
        if snapshot.get(key) is None:
            raise Conflict("node-not-eligible", node_id=key.node, reason="it was removed")
    return Txn.on(snapshot)


async def drop_regions(state: CreateTable, context: Context) -> None:
    """A node that cannot be reached is told by the leader's heartbeat answers when it is back."""
    if is_of_another(state, context):
        return
    await drop_new_regions(context, [NewTable(state.info, state.route)])


def is_of_another(state: CreateTable, context: Context) -> bool:
    """Whether a table has that id already, also a dropped one: the regions are that table's."""
    return state.info.table_id in context.ports.applied().tables


def locks(state: CreateTable) -> tuple[Lock, ...]:
    info = state.info
    return (
        *whole_table(info.catalog, info.schema_name, info.name, info.table_id),
        *placing_of_table(info.catalog, state.placement, state.tablespace),
    )


def resource(state: CreateTable) -> Resource:
    return Resource.table(state.info.table_id, state.info.full_name)


def claims(state: CreateTable, catalog: Catalog) -> tuple[TenantClaim, ...]:
    info = state.info
    return (TenantClaim(info.catalog, {info.table_id: len(state.route.region_routes)}),)


CREATE_TABLE = Kind(
    name="create_table",
    state=CreateTable,
    steps={
        "create": Step(create, to=frozenset({"create"}), undo=drop_regions, ends=True),
    },
    no_return="create",
    locks=locks,
    resource=resource,
    success=201,
    graphs=(TABLE,),
    claims=claims,
)
