"""Regions and the orders that make, open, close and drop them: one request per node."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from keys.model.tables import (
    Column,
    ConstraintKind,
    RegionRoute,
    RegionState,
    TableInfo,
    TableRoute,
)
from metasrv_base.concurrency.fanout import fan_out, fan_out_until
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.orders import (
    CloseRegion,
    CreateRegion,
    DiscardRoot,
    DropRegion,
    OpenRegion,
    Order,
    OrderResult,
    OriginColumn,
    RegionColumn,
    SetSchema,
)
from metasrv_base.wire.problem.problems import is_refusal, node_error
from procedures.context import Context
from procedures.quorum import minimum_of

NODES_AT_ONCE_MAX = 32  # requests of one step in flight
LATE_ANSWERS_MS = 2_000
"""The time for which every node is waited for, even if the answers of others suffice."""
UNNUMBERED = 0  # the Nodes adapter gives orders their numbers


def create_order(
    info: TableInfo, region: RegionRoute, replaces: Sequence[str] = ()
) -> CreateRegion:
    return CreateRegion(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        root=region.root,
        table_id=info.table_id,
        schema_version=info.schema_version,
        schema_floor=info.schema_floor,
        columns=_columns(info),
        key_columns=list(info.primary_key),
        indexes=_indexes(info),
        replaces=list(replaces),
        engine=info.engine,
        engine_options=info.engine_options,
        copies=told_copies(info, region) if region.copies or region.copies_version else None,
    )


def open_order(info: TableInfo, region: RegionRoute) -> OpenRegion:
    return OpenRegion(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        root=region.root,
        table_id=info.table_id,
        schema_version=info.schema_version,
        schema_floor=info.schema_floor,
        columns=_columns(info),
        key_columns=list(info.primary_key),
        indexes=_indexes(info),
        borrows=list(region.borrows),
        unannounced=list(region.unannounced),
        engine=info.engine,
        engine_options=info.engine_options,
        copies=told_copies(info, region) if region.copies or region.copies_version else None,
    )


def told_copies(info: TableInfo, region: RegionRoute) -> RegionCopies:
    """All copies of *region*, the leader first. The sender adds the addresses."""
    leader = OrderedCopy(node=region.leader, root=region.root, role="leader")
    others = [
        OrderedCopy(
            node=copy.node,
            root=copy.root,
            role=copy.role.value,
            eligible=copy.eligible_epoch == region.epoch,
        )
        for copy in region.copies
    ]
    return RegionCopies(
        version=region.copies_version,
        min_in_sync=minimum_of(info, region),
        members=[leader, *others],
    )


@dataclass(frozen=True, slots=True)
class Marks:
    """Changes that an order of a schema makes to the marks of a region."""

    opens: str | None = None
    closes: tuple[str, ...] = ()


NO_MARKS = Marks()


def schema_order(
    info: TableInfo,
    region: RegionRoute,
    dead_indexes: Sequence[int] = (),
    marks: Marks = NO_MARKS,
) -> SetSchema:
    return SetSchema(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        schema_version=info.schema_version,
        schema_floor=info.schema_floor,
        columns=_columns(info),
        indexes=_indexes(info),
        dead_indexes=list(dead_indexes),
        mark=marks.opens,
        close_marks=list(marks.closes),
    )


def _columns(info: TableInfo) -> list[RegionColumn]:
    """Returns the columns of an order. A column is not nullable as long as NOT NULL holds for
    any reader."""
    never_null = {
        column
        for constraint in info.constraints
        if constraint.kind is ConstraintKind.NOT_NULL and constraint.holds
        for column in constraint.columns
    }
    return [
        RegionColumn(
            id=column.id,
            type=column.type,
            nullable=_may_be_null(column, never_null),
            origin_default=column.origin_default,
            origin_columns=[
                OriginColumn(id=origin.id, type=origin.type) for origin in column.origin_columns
            ],
        )
        for column in info.columns
    ]


def _may_be_null(column: Column, never_null: Container[int]) -> bool:
    """While a type changes, a hidden column is null where a value has no form in its type."""
    changes = column.replaces is not None or column.replaced_by is not None
    if changes and column.state is not ElementState.PUBLIC:
        return True
    return column.nullable and column.id not in never_null


def _indexes(info: TableInfo) -> list[int]:
    return [index.id for index in info.indexes]


def is_gone(info: TableInfo, region: RegionRoute) -> bool:
    """Whether the region is lost for good: no order but one to create it again, or to drop it,
    concerns it. It never serves again as it is, and `create` brings the schema of then."""
    return info.is_volatile and region.state is RegionState.LOST


def not_gone(info: TableInfo, route: TableRoute) -> tuple[RegionRoute, ...]:
    """The regions that must hear of a change of the table."""
    return tuple(region for region in route.region_routes if not is_gone(info, region))


def unserved(context: Context, info: TableInfo, regions: Iterable[RegionRoute]) -> set[str]:
    """Ids of the regions that their living leaders do not serve at this epoch, whatever they are
    ordered: they are gone, the process of the leader has started again, or it has lost the files.
    A failover that gives them another epoch may wait for the locks of this procedure."""
    views = {view.node_id: view for view in context.ports.placement.nodes()}

    def is_unserved(region: RegionRoute) -> bool:
        leader, identity = views.get(region.leader), (region.region_id, region.epoch)
        return is_gone(info, region) or (
            leader is not None and (leader.has_restarted(*identity) or leader.has_lost(*identity))
        )

    return {region.region_id for region in regions if is_unserved(region)}


def close_order(info: TableInfo, region: RegionRoute) -> CloseRegion:
    return CloseRegion(number=UNNUMBERED, region_id=region.region_id, epoch=region.epoch)


def drop_order(info: TableInfo, region: RegionRoute) -> DropRegion:
    return DropRegion(
        number=UNNUMBERED, region_id=region.region_id, epoch=region.epoch, root=region.root
    )


def discard_order(info: TableInfo, region: RegionRoute) -> DiscardRoot:
    """*region* with the root that goes."""
    return DiscardRoot(
        number=UNNUMBERED, region_id=region.region_id, epoch=region.epoch, root=region.root
    )


@frozen
class OrderAnswers:
    """The nodes' answers to one round of orders, by region id."""

    results: Mapping[str, OrderResult]
    silent: Mapping[str, MetaError]
    """Nodes that could not be reached, with what happened."""

    def failed(self) -> dict[str, str]:
        """Region id -> code of the error it answered with."""
        return {region: r.error.code for region, r in self.results.items() if r.error is not None}

    def kept(self) -> set[str]:
        """Ids of regions whose node will not delete the folder: it is below none that it may delete
        in, or holds what no region makes. Asking again is no use; a person must look."""
        return {region for region, code in self.failed().items() if code == "invalid-request"}

    def without(self, regions: Collection[str]) -> "OrderAnswers":
        rest = {region: r for region, r in self.results.items() if region not in regions}
        return OrderAnswers(rest, self.silent)

    def must_all_succeed(self) -> None:
        """Raises Unavailable with every region that failed and every node that was silent:
        `order-refused` if a region will not do it, `region-lost` if it cannot be read."""
        failed = self.failed()
        if "region-lost" in failed.values():
            raise Unavailable("region-lost", regions=sorted(failed))
        if any(is_refusal(code) for code in failed.values()):
            raise Unavailable("order-refused", regions=failed)
        if failed or self.silent:
            raise Unavailable(regions=failed, nodes=sorted(self.silent))


MakeOrder = Callable[[TableInfo, RegionRoute], Order]


NodeAnswers = Mapping[str, Sequence[OrderResult]]
"""The results of each node that has answered, in the order of its orders."""
Suffices = Callable[[NodeAnswers], bool]
"""Whether no more answers are needed. A node that takes longer than LATE_ANSWERS_MS is waited for
only until then; it may carry out its orders later."""


def answered_by_all_that_do(context: Context, nodes: Collection[str]) -> Suffices:
    """Every one of *nodes* has answered, or is dead or answers no orders by now."""

    def suffices(answers: NodeAnswers) -> bool:
        return not ({*nodes} - answers.keys()) & context.answering_nodes()

    return suffices


async def order_all(
    context: Context,
    info: TableInfo,
    regions: Iterable[RegionRoute],
    make: MakeOrder,
    suffices: Suffices | None = None,
) -> OrderAnswers:
    """Sends one request to each leader of *regions*, all at once. Raises Conflict (a newer
    term)."""
    orders: dict[str, list[Order]] = {}
    for region in regions:
        orders.setdefault(region.leader, []).append(make(info, region))
    answers, silent = await ask_nodes(context, orders, suffices)
    results = {result.region_id: result for some in answers.values() for result in some}
    return OrderAnswers(results, silent)


async def ask_nodes(
    context: Context, orders: Mapping[str, Sequence[Order]], suffices: Suffices | None = None
) -> tuple[NodeAnswers, Mapping[str, MetaError]]:
    """Sends *orders*, by node, one request to each. Returns the results of each node that answered,
    and what happened to the others. Raises Conflict (a newer term)."""
    answers: dict[str, Sequence[OrderResult]] = {}
    silent: dict[str, MetaError] = {}

    async def ask(node: str) -> None:
        with context.waiting_for("node", node):
            try:
                answers[node] = await context.ports.nodes.send(
                    node, orders[node], sender=context.sender
                )
            except (Unavailable, Unknown) as error:
                silent[node] = error.with_traceback(None)  # whose frames hold it: a cycle

    asks = [partial(ask, node) for node in sorted(orders)]
    if suffices is None:
        await fan_out(asks, at_once=NODES_AT_ONCE_MAX)
    else:
        enough = partial(suffices, answers)
        await fan_out_until(enough, asks, at_once=NODES_AT_ONCE_MAX, every_ms=LATE_ANSWERS_MS)
    for node in orders.keys() - answers.keys() - silent.keys():
        silent[node] = Unknown(what="node", name=node, reason="it has not answered in time")
    return answers, silent


async def order_one(context: Context, node: str, order: Order) -> None:
    """Sends one order to one node. Raises the error that the node answers."""
    with context.waiting_for("node", node):
        (result,) = await context.ports.nodes.send(node, [order], sender=context.sender)
    if result.error is not None:
        raise node_error(result.error.code, result.error.facts)
