"""Plans the procedures of a failover request, or refuses it. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import RegionRoute
from metasrv.nodes.guard import census
from metasrv.nodes.status import GONE, NodeState, NodeStatus
from metasrv.service.cluster.room import Room, must_take, must_take_all, must_take_copies
from metasrv.service.named import (
    find_region,
    is_node_id,
    is_region_id,
    no_node_id,
    no_region_id,
)
from metasrv.settings.tunables import Maintenance
from metasrv_base.concurrency.turns import Turns
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.wire.api.cluster import DrainRequest
from metasrv_base.wire.api.procedures import FailoverRequest
from metasrv_base.wire.problem.problems import FieldError, refuse
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.kinds.moves.drain_node import DRAIN_NODE, DrainNode, DroppedTables
from procedures.kinds.moves.leaving_copies import copied_tables
from procedures.machine import Kind, ProcedureState
from procedures.ports import NodeView
from procedures.steps.placing import why_not

FAILOVERS = frozenset({FAILOVER_NODE.name, FAILOVER_TABLE.name, DRAIN_NODE.name})
"""Kinds by which regions leave a node."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts at the moment of judging."""

    catalog: Catalog
    statuses: tuple[NodeStatus, ...]
    views: tuple[NodeView, ...]
    maintenance: Maintenance | None
    """The maintenance that is on; None if it is off."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """One procedure by which regions leave a node."""

    kind: Kind[Any]
    state: ProcedureState
    expected_epoch: int | None = None
    """The epoch of every region it moves, as the client requires; compared again under the
    locks."""


def validate(request: FailoverRequest) -> None:
    """Raises Refused for what is wrong whatever the cluster is like."""
    errors: list[FieldError] = []
    if (request.node_id is None) == (request.region_ids is None):
        errors.append(FieldError(pointer="", detail="name either node_id or region_ids"))
    if request.node_id is not None and request.expected_epoch is not None:
        detail = "expected_epoch goes with region_ids, not with node_id"
        errors.append(FieldError(pointer="/expected_epoch", detail=detail))
    ids = request.region_ids or ()
    for number, region in enumerate(ids):
        if not is_region_id(region):
            errors.append(no_region_id(f"/region_ids/{number}"))
        elif region in ids[:number]:
            errors.append(
                FieldError(pointer=f"/region_ids/{number}", detail="the region is named twice")
            )
    names = [("/node_id", request.node_id)] if request.node_id is not None else []
    names += [(f"/targets/{number}", node) for number, node in enumerate(request.targets)]
    for pointer, node in names:
        if not is_node_id(node):
            errors.append(no_node_id(pointer))
    if request.node_id is not None and request.node_id in request.targets:
        errors.append(FieldError(pointer="/targets", detail="the node that fails is no target"))
    refuse(errors)


def plan_node(request: FailoverRequest, situation: Situation) -> Turns[Leaving]:
    """The whole node, by one procedure. Raises NotFound; Conflict, also where a table may go to
    none of the targets. Without targets its regions wait for a node that may take them."""
    assert request.node_id is not None
    must_be_registered([request.node_id, *request.targets], situation)
    _must_be_allowed(request, [request.node_id], situation)
    if request.targets:
        room = Room(situation.views, request.node_id, request.targets)
        yield from must_take_all(room, situation.catalog)
    state = FailoverNode(
        node=request.node_id,
        reason=request.reason,
        force=request.force,
        targets=request.targets,
        max_parallel=request.max_parallel,
    )
    return Leaving(FAILOVER_NODE, state)


def plan_drain(node_id: str, request: DrainRequest, situation: Situation) -> Turns[Leaving]:
    """A node that lives is left in order, copy by copy, and no guard applies, for it is a person
    who asks. Raises NotFound; Conflict("node-not-eligible") if there is nowhere to go,
    for all of them, for the tables of a placement, or for one of the copies of a region."""
    must_be_registered([node_id, *request.targets], situation)
    failover = FailoverRequest(
        node_id=node_id, reason=request.reason, targets=request.targets, force=False
    )
    validate(failover)
    _targets_must_be_able(failover, situation.views)
    reasons = {view.node_id: why_not(view, {node_id}) for view in situation.views}
    if situation.catalog.led_by(node_id) and None not in reasons.values():
        refusal = "; ".join(f"{node} is {reason}" for node, reason in reasons.items())
        raise Conflict("node-not-eligible", reason=refusal, reasons=reasons)
    room = Room(situation.views, node_id, request.targets)
    yield from must_take_all(room, situation.catalog)
    copied = yield from copied_tables(situation.catalog, node_id)
    yield from must_take_copies(room, situation.catalog, copied)
    dropped = DroppedTables(request.dropped)
    facts = {"node": node_id, "reason": request.reason, "targets": request.targets}
    return Leaving(DRAIN_NODE, DrainNode(**facts, dropped=dropped))


def plan_regions(
    request: FailoverRequest, region_ids: Collection[str], situation: Situation
) -> tuple[Leaving, ...]:
    """One procedure for each table and each node that leads some of its regions, in that order."""
    groups: dict[tuple[int, str], list[RegionRoute]] = {}
    tables: dict[int, CatalogTable] = {}
    for region_id in region_ids:
        table, region = find_region(situation.catalog, region_id)
        if request.expected_epoch not in (None, region.epoch):
            raise Conflict(
                "epoch-mismatch",
                region_id=region_id,
                expected=request.expected_epoch,
                found=region.epoch,
            )
        if table.info.is_volatile:
            _must_be_over(table, region, situation)
        tables[table.info.table_id] = table
        groups.setdefault((table.info.table_id, region.leader), []).append(region)
    leaders = sorted({leader for _, leader in groups})
    must_be_registered(request.targets, situation)
    if same := sorted(set(leaders) & set(request.targets)):
        raise Refused(
            "invalid-request",
            errors=(FieldError(pointer="/targets", detail=f"{same[0]} leads one of the regions"),),
        )
    _must_be_allowed(request, leaders, situation)
    if request.targets:
        for (table_id, leader), _ in sorted(groups.items()):
            room = Room(situation.views, leader, request.targets)
            must_take(room, situation.catalog, (tables[table_id],))
    return tuple(
        Leaving(
            FAILOVER_TABLE,
            FailoverTable(
                table_id=table_id,
                name=tables[table_id].info.full_name,
                source=leader,
                region_ids=tuple(region.region_id for region in regions),
                reason=request.reason,
                force=request.force,
                targets=request.targets,
                expected_epoch=request.expected_epoch,
            ),
            request.expected_epoch,
        )
        for (table_id, leader), regions in sorted(groups.items())
    )


def _must_be_over(table: CatalogTable, region: RegionRoute, situation: Situation) -> None:
    """Raises Refused `unsupported` for a region whose rows are in the memory of a node that lives:
    a move would lose them, and `truncate` is the request that says so."""
    for status in situation.statuses:
        if status.node.node_id == region.leader and status.state not in GONE:
            what = f"a move of region {region.region_id} of engine {table.info.engine}"
            raise Refused("unsupported", what=what, region_id=region.region_id)


def must_be_registered(nodes: Iterable[str], situation: Situation) -> None:
    registered = {status.node.node_id for status in situation.statuses}
    for node in nodes:
        if node not in registered:
            raise NotFound("not-found", what="node", name=node)


def _must_be_allowed(
    request: FailoverRequest, leaders: Collection[str], situation: Situation
) -> None:
    """Targets must be able in any case, and the leaders be adopted; `force` overrules the rest."""
    _must_be_adopted(leaders, situation)
    _targets_must_be_able(request, situation.views)
    if request.force:
        return
    if situation.maintenance is not None:
        raise Conflict("maintenance-mode", **_reason(situation.maintenance))
    catalog = situation.catalog
    counts = census(situation.statuses, {node for node in catalog.nodes if catalog.nodes[node]})
    if counts.is_doubtful:
        raise Conflict("failover-guard", dead=counts.dead, nodes=counts.nodes)
    for status in situation.statuses:
        if status.node.node_id in leaders and may_still_serve(status):
            raise Conflict(
                "node-still-alive",
                node_id=status.node.node_id,
                lease_left_ms=status.lease_left_ms,
                state=status.state.value,
            )


def _must_be_adopted(leaders: Collection[str], situation: Situation) -> None:
    for status in situation.statuses:
        node = status.node
        if node.node_id in leaders and node.restored_from is not None:
            reason = "it is not adopted yet: nobody knows where its regions are"
            raise Conflict("node-not-eligible", node_id=node.node_id, reason=reason)


def may_still_serve(status: NodeStatus) -> bool:
    """Whether the node holds a lease, or is heard and will be given one."""
    return status.lease_left_ms > 0 or status.state is NodeState.ALIVE


def _targets_must_be_able(request: FailoverRequest, views: Iterable[NodeView]) -> None:
    by_id = {view.node_id: view for view in views}
    reasons = {node: why_not(by_id[node], ()) for node in request.targets}
    for node, reason in reasons.items():
        if reason is not None:
            raise Conflict("node-not-eligible", node_id=node, reason=f"it is {reason}")


def _reason(maintenance: Maintenance) -> Mapping[str, str]:
    """A fact only if one was given: the sentence without it is the better one."""
    return {"reason": maintenance.reason} if maintenance.reason else {}
