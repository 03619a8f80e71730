"""Orders to every copy of a region: one request per node, as to the leaders."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from keys.model.tables import RegionRoute, RegionState, TableInfo
from metasrv_base.errors import Unavailable
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.node.orders import (
    CloseRegion,
    CreateRegion,
    DiscardRoot,
    DropRegion,
    HandOver,
    OpenRegion,
    Order,
    OrderResult,
)
from procedures.context import Context
from procedures.steps.region_orders import (
    UNNUMBERED,
    NodeAnswers,
    OrderAnswers,
    ask_nodes,
    create_order,
    open_order,
)


@frozen
class CopyTarget:
    """A copy of a region, that of the leader too, as the target of an order."""

    info: TableInfo
    region: RegionRoute
    node: str
    root: str

    @property
    def is_leader(self) -> bool:
        return self.node == self.region.leader

    @property
    def name(self) -> str:
        """The copy in answers and errors: the id of the region for the leader's."""
        region = self.region
        is_leader = self.node == region.leader
        return region.region_id if is_leader else f"{region.region_id} at {self.node}"


HOLD_MS = 3_000
"""The time after which a leader goes on that has made writes wait, and was replaced by nobody."""

MakeCopyOrder = Callable[[CopyTarget], Order]
CopyResults = Mapping[str, OrderResult]
"""Results by `CopyTarget.name`."""
CopiesSuffice = Callable[[CopyResults], bool]
"""Whether no more results are needed, as `region_orders.Suffices`."""


def answered(target: CopyTarget) -> CopiesSuffice:
    """The result of *target* suffices."""
    return lambda results: target.name in results


def in_any_case(_: CopyResults) -> bool:
    """Whatever the results are: they change nothing."""
    return True


def answered_by_all_that_do(context: Context, targets: Collection[CopyTarget]) -> CopiesSuffice:
    """All have answered whose nodes are not dead, and do not answer no orders, by now."""

    def suffices(results: CopyResults) -> bool:
        nodes = {target.node for target in targets if target.name not in results}
        return not nodes & context.answering_nodes()

    return suffices


def targets_of(info: TableInfo, regions: Iterable[RegionRoute]) -> Iterator[CopyTarget]:
    """All copies of *regions*, the leader's first."""
    for region in regions:
        yield CopyTarget(info, region, region.leader, region.root)
        for copy in region.copies:
            yield CopyTarget(info, region, copy.node, copy.root)


def living(targets: Iterable[CopyTarget], alive: Collection[str]) -> list[CopyTarget]:
    return [target for target in targets if target.node in alive]


def create_copy(target: CopyTarget, replaces: Sequence[str] = ()) -> CreateRegion:
    """Makes an empty copy, or the region itself at its leader, behind fences in the roots that it
    replaces there."""
    order = create_order(target.info, _told(target), replaces)
    return order if target.is_leader else order.model_copy(update=_as_copy(target))


def open_copy(target: CopyTarget) -> OpenRegion:
    order = open_order(target.info, _told(target))
    if target.is_leader:
        return order
    return order.model_copy(update={**_as_copy(target), "borrows": [], "unannounced": []})


def _told(target: CopyTarget) -> RegionRoute:
    """The route as the node is told of it. Which copies are eligible concerns the leader alone,
    which has asked for that: other nodes may not know the field."""
    region = target.region
    if target.is_leader or not region.eligible:
        return region
    return region.model_copy(update={"copies": region.without_eligible().copies})


def _as_copy(target: CopyTarget) -> dict[str, object]:
    return {"role": "copy", "root": target.root}


def close_copy(target: CopyTarget) -> CloseRegion:
    region = target.region
    return CloseRegion(number=UNNUMBERED, region_id=region.region_id, epoch=region.epoch)


def drop_copy(target: CopyTarget) -> DropRegion:
    region = target.region
    return DropRegion(
        number=UNNUMBERED, region_id=region.region_id, epoch=region.epoch, root=target.root
    )


def discard_copy(target: CopyTarget) -> DiscardRoot:
    """Deletes the folder of a copy that the route names no more, at its own node."""
    region = target.region
    return DiscardRoot(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        root=target.root,
        left=True,
    )


def prepare_copy(target: CopyTarget) -> HandOver:
    """Has a copy, or the leader, make ready for another leader: it writes its memory to files."""
    region = target.region
    return HandOver(
        number=UNNUMBERED, region_id=region.region_id, epoch=region.epoch, phase="prepare"
    )


def hold_writes(target: CopyTarget) -> HandOver:
    """Has the leader make writes wait until the copy *target* has its whole log."""
    region = target.region
    return HandOver(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        phase="hold",
        node=target.node,
        root=target.root,
        hold_ms=HOLD_MS,
    )


def resume_writes(target: CopyTarget) -> HandOver:
    """Has the leader take writes again that it makes wait."""
    return prepare_copy(target).model_copy(update={"phase": "resume"})


async def order_copies(
    context: Context,
    targets: Iterable[CopyTarget],
    make: MakeCopyOrder,
    suffices: CopiesSuffice | None = None,
) -> OrderAnswers:
    """Sends one request to each node, all at once. Answers are by `CopyTarget.name`. Raises
    Conflict (a newer term)."""
    by_node: dict[str, list[CopyTarget]] = {}
    for target in targets:
        by_node.setdefault(target.node, []).append(target)

    def named(answers: NodeAnswers) -> CopyResults:
        return {
            target.name: result
            for node, some in answers.items()
            for target, result in zip(by_node[node], some, strict=True)
        }

    orders = {node: list(map(make, here)) for node, here in by_node.items()}
    enough = None if suffices is None else lambda some: suffices(named(some))
    answers, silent = await ask_nodes(context, orders, enough)
    return OrderAnswers(named(answers), silent)


async def takes_writes(context: Context, info: TableInfo, region: RegionRoute) -> bool:
    """Whether the leader of the region answers that it takes writes; it waits for that for some
    seconds. A node that does not know the order is not waited for."""
    leader = CopyTarget(info, region, region.leader, region.root)
    answers = await order_copies(context, living([leader], context.alive_nodes()), prepare_copy)
    code = answers.failed().get(leader.name)
    return leader.name in answers.results and code in (None, "invalid-request")


async def tell_copies(context: Context, info: TableInfo, regions: Iterable[RegionRoute]) -> None:
    """Tells the copies of *regions*, on nodes that answer orders, which leader and epoch they
    follow. What they answer changes nothing: the leader requires them, and a copy that was not
    reached is told by the answers to its heartbeats."""
    copies = [target for target in targets_of(info, regions) if not target.is_leader]
    await order_copies(context, living(copies, context.answering_nodes()), open_copy, in_any_case)


async def tell_leader(context: Context, info: TableInfo, region: RegionRoute) -> None:
    """Tells a living leader which copies the route names. Its answer changes nothing, as with
    `tell_copies`."""
    await tell_leaders(context, info, (region,))


async def announce_leave(context: Context, info: TableInfo, region: RegionRoute) -> None:
    """Tells the leader that the only other copy in sync is about to be removed. Raises Unavailable
    if it has not answered that it knows: a failover of a leader that is alone in its set waits for
    its lease, and for no promise (docs/protocols.md P4.5). A node that does not know this field of
    the order is not waited for."""

    def announced(target: CopyTarget) -> OpenRegion:
        order = open_copy(target)
        assert order.copies is not None, "the region has another copy"
        return order.model_copy(
            update={"copies": order.copies.model_copy(update={"last_leaves": True})}
        )

    leader = CopyTarget(info, region, region.leader, region.root)
    if not living([leader], context.alive_nodes()) or region.state is not RegionState.OPEN:
        what = f"the leader {region.leader} of region {region.region_id}"
        raise Unavailable("not-ready", what=what, reason="it must know that its last copy leaves")
    answers = await order_copies(context, [leader], announced)
    if answers.failed().get(leader.name) != "invalid-request":
        answers.must_all_succeed()


async def tell_leaders(context: Context, info: TableInfo, regions: Iterable[RegionRoute]) -> None:
    """Does the same for the leaders of *regions* that have, or have had, copies and are open."""
    leaders = [
        CopyTarget(info, region, region.leader, region.root)
        for region in regions
        if region.needs_copies_format and region.state is RegionState.OPEN
    ]
    await order_copies(context, living(leaders, context.answering_nodes()), open_copy, in_any_case)


async def delete_copies(
    context: Context, targets: Iterable[CopyTarget], make: MakeCopyOrder
) -> list[str]:
    """Orders each node to delete its copy, by *make*, and returns the folders that stay: the node
    is gone or answers no orders, or will not delete a folder that is not the region's alone."""
    targets = list(targets)
    here = living(targets, context.answering_nodes())
    answers = await order_copies(context, here, make, answered_by_all_that_do(context, here))
    kept = answers.kept()
    answers.without(kept).must_all_succeed()
    reached = {target.name for target in here} - kept
    return [target.root for target in targets if target.name not in reached]
