"""Changes of one region by request: who leads it, and which copies it has."""

from collections.abc import Callable

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import RegionRoute, TableInfo
from metasrv.leadership.copies.copy_plan import CopiedRegion, CopyNodes, Need, plan_copies
from metasrv.service.cluster.failover_plan import Leaving
from metasrv.service.cluster.failovers import FailoverPlan, submitted
from metasrv.service.named import find_region, is_node_id, no_node_id
from metasrv.service.requests.planning import plan_of
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import (
    AcceptedChange,
    Patience,
    only_the_leader,
    replayed,
    waited,
)
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Conflict, NotFound
from metasrv_base.wire.api.procedures import (
    AddCopyRequest,
    MoveCopyRequest,
    RemoveCopyRequest,
    SwitchLeaderRequest,
)
from metasrv_base.wire.problem.problems import refuse
from procedures.kinds.copies.add_copy import ADD_COPY, AddCopy, must_take_one_more
from procedures.kinds.copies.remove_copy import REMOVE_COPY, RemoveCopy, must_be_free
from procedures.kinds.failover.next_leader import LeaderChoice, next_leader
from procedures.kinds.failover.switch_leader import SWITCH_LEADER, SwitchLeader
from procedures.kinds.moves.copy_move import MoveCopy, destination_of
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.ports import NodeView
from procedures.steps.copies.neighbours import Neighbours
from procedures.steps.placing import NodeRules

Planned = Callable[[CatalogTable, RegionRoute, tuple[NodeView, ...]], Leaving]
Done = tuple[AcceptedChange, ...] | FailoverPlan


async def switch_leader(
    state: ServerState, context: RequestContext, region_id: str, request: SwitchLeaderRequest
) -> Done:
    """Submits the switch of the leader. A node that leads already: a procedure that changes
    nothing."""
    refuse((no_node_id("/to_node"),) if _is_no_node(request.to_node) else ())

    def planned(table: CatalogTable, region: RegionRoute, nodes: tuple[NodeView, ...]) -> Leaving:
        must_have_epoch(region, request.expected_epoch)
        if region.leader != request.to_node:
            next_leader(region, nodes, LeaderChoice(request.to_node), {})
        change = SwitchLeader(
            table_id=table.info.table_id,
            name=table.info.full_name,
            region_id=region.region_id,
            reason=request.reason,
            epoch=region.epoch,
            to_node=request.to_node,
        )
        return Leaving(SWITCH_LEADER, change)

    return await _changed(state, context, region_id, planned)


async def add_copy(
    state: ServerState, context: RequestContext, region_id: str, request: AddCopyRequest
) -> Done:
    """Submits the procedure that adds a learner. Refused with `replica-limit` before anything is
    made."""
    refuse((no_node_id("/node"),) if _is_no_node(request.node) else ())

    def planned(table: CatalogTable, region: RegionRoute, nodes: tuple[NodeView, ...]) -> Leaving:
        must_take_one_more(table.info, region, region.copies)
        copied = CopiedRegion(table.info, region, _rules_of(state, table.info))
        change = AddCopy(
            table_id=table.info.table_id,
            name=table.info.full_name,
            region_id=region.region_id,
            node=_home(copied, nodes, request.node, _neighbours(state)),
            reason=request.reason,
        )
        return Leaving(ADD_COPY, change)

    return await _changed(state, context, region_id, planned)


def _home(
    copied: CopiedRegion,
    nodes: tuple[NodeView, ...],
    node: str | None,
    neighbours: Neighbours,
) -> str:
    """The node that gets a copy. Raises Conflict("node-not-eligible") with the reasons."""
    region = copied.region
    reasons = {
        view.node_id: copied.rules.why_not(view, region.nodes)
        for view in nodes
        if node in (None, view.node_id)
    }
    if node is not None and reasons.get(node, "not registered") is None:
        return node
    if node is None:
        views = {view.node_id: view for view in nodes}
        need = Need(copied, len(region.in_sync), missing=1)
        for work in plan_copies((need,), CopyNodes(views), neighbours):
            return work.node
    else:
        reasons.setdefault(node, "not registered")
    raise Conflict("node-not-eligible", region_id=region.region_id, reasons=reasons)


async def remove_copy(
    state: ServerState,
    context: RequestContext,
    region_id: str,
    node: str,
    request: RemoveCopyRequest,
) -> Done:
    """Submits the procedure that removes the copy on *node*. Raises NotFound where it has none."""

    def planned(table: CatalogTable, region: RegionRoute, nodes: tuple[NodeView, ...]) -> Leaving:
        change = RemoveCopy(
            table_id=table.info.table_id,
            name=table.info.full_name,
            region_id=region.region_id,
            node=node,
            root=_root_on(region, node),
            reason=request.reason,
            forced=request.force,
        )
        alive = {view.node_id for view in nodes if view.alive}
        must_be_free(table.info, region, change, alive)
        return Leaving(REMOVE_COPY, change)

    return await _changed(state, context, region_id, planned)


async def move_copy(
    state: ServerState,
    context: RequestContext,
    region_id: str,
    node: str,
    request: MoveCopyRequest,
) -> Done:
    """Submits the procedure that moves the copy on *node*. Raises NotFound where it has none, and
    as `destination_of` and `_home` before anything is made."""
    refuse((no_node_id("/to_node"),) if _is_no_node(request.to_node) else ())

    def planned(table: CatalogTable, region: RegionRoute, nodes: tuple[NodeView, ...]) -> Leaving:
        root, to_node = _root_on(region, node), request.to_node
        if to_node not in region.nodes:
            must_take_one_more(table.info, region, region.copies)
            copied = CopiedRegion(table.info, region, _rules_of(state, table.info))
            to_node = _home(copied, nodes, to_node, _neighbours(state))
        assert to_node is not None
        destination_of(table.info, region, root, to_node)
        change = MoveCopy(
            table_id=table.info.table_id,
            name=table.info.full_name,
            region_id=region.region_id,
            from_node=node,
            root=root,
            to_node=to_node,
            reason=request.reason,
        )
        return Leaving(MOVE_COPY, change)

    return await _changed(state, context, region_id, planned)


def _neighbours(state: ServerState) -> Neighbours:
    return Neighbours(state.follower.catalog.copy_groups)


def _rules_of(state: ServerState, info: TableInfo) -> NodeRules:
    return NodeRules.of(state.follower.catalog.placing.placement_of(info), info.engine)


def _root_on(region: RegionRoute, node: str) -> str:
    for name, root in zip(region.nodes, region.roots, strict=True):
        if name == node:
            return root
    raise NotFound(what=f"copy of region {region.region_id}", name=node)


async def _changed(
    state: ServerState, context: RequestContext, region_id: str, planned: Planned
) -> Done:
    """Judges the request by the applied catalog, and submits its procedure.

    Raises NotFound for a region of no living table, and what *planned* raises.
    """
    context.require_no_version()
    patience = Patience.of(state, context)
    with only_the_leader():
        term = await state.leading()
        submission = await replayed(term, context)
        if submission is None:
            catalog = state.follower.catalog
            table, region = find_region(catalog, region_id)
            change = planned(table, region, term.ports.placement.nodes())
            if context.dry_run:
                plan = await plan_of(term, change.kind, change.state, context.client())
                return FailoverPlan((plan,), catalog.version)
            submission = await submitted(state, term, context, change)
        return (await waited(term, submission, patience),)


def must_have_epoch(region: RegionRoute, expected: int | None) -> None:
    """Raises Conflict("epoch-mismatch")."""
    if expected not in (None, region.epoch):
        facts = {"expected": expected, "found": region.epoch}
        raise Conflict("epoch-mismatch", region_id=region.region_id, **facts)


def _is_no_node(node: str | None) -> bool:
    return node is not None and not is_node_id(node)
