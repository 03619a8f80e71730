"""POST /v1/nodes/{node}/decommission: a node leaves for good, once nothing names it any more."""

from keys.model.cluster import Cordon, Removal, RemovedNode
from metasrv.leadership.retirement import claims_of
from metasrv.leadership.term import Term
from metasrv.nodes.claims import Claims
from metasrv.nodes.status import GONE, NodeState, NodeStatus, status_of_removed
from metasrv.service.bodies.shapes import time_of
from metasrv.service.cluster.failover_plan import Leaving
from metasrv.service.cluster.failovers import submitted, under_way
from metasrv.service.cluster.nodes import node_body
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import (
    AcceptedChange,
    Patience,
    only_the_leader,
    replayed,
    waited,
)
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.cluster import DecommissionRequest, NodeBody
from procedures.engine.submit import Submitted
from procedures.kinds.failover.decommission_node import DECOMMISSION_NODE, DecommissionNode

FACTS_MAX = 20  # of each sort, as an answer shows them; `what` counts them all


async def decommission(
    state: ServerState, context: RequestContext, node_id: str, request: DecommissionRequest
) -> NodeBody | AcceptedChange:
    """Durable when it is answered. Of a node that is removed already: as it was removed. Of one
    whose disk is gone: the procedure, one at a time, that moves its regions and removes it.

    Raises NotFound; Conflict("node-in-use") with all that names it; Conflict("node-still-alive")
    for a disk that is said to be gone, of a node that is heard.
    """
    context.require_no_version()
    patience = Patience.of(state, context)
    with only_the_leader():
        term = await state.leading()
        if request.lost and (submission := await replayed(term, context)) is not None:
            return await waited(term, submission, patience)
        status = term.nodes.node(node_id)
        if status.state is NodeState.REMOVED:
            return node_body(status, state.follower.catalog)
        if request.lost:
            _must_be_dead(status)
        else:
            await _must_be_free(term, status)
        at_ms = state.clock.wall_ms()
        removal = Removal(
            at_ms=at_ms, by=context.principal, reason=request.reason, lost=request.lost
        )
        if context.dry_run:
            would_be = status_of_removed(RemovedNode(node=status.node, removal=removal))
            return node_body(would_be, state.follower.catalog)
        if request.lost:
            submission = await _of_lost(state, term, context, removal, node_id)
            return await waited(term, submission, patience)
        cordon = Cordon(reason=request.reason, by=context.principal, at_ms=at_ms)
        await _hold_off(term, status, cordon)
        await _must_be_free(term, status)  # what chose it before the cordon is here by now
        await term.nodes.remove(node_id, removal)
        return node_body(term.nodes.node(node_id), state.follower.catalog)


async def _of_lost(
    state: ServerState, term: Term, context: RequestContext, removal: Removal, node_id: str
) -> Submitted:
    submission = under_way(term, node_id, DECOMMISSION_NODE.name)
    if submission is not None:
        return submission
    decommission = DecommissionNode(node=node_id, reason=removal.reason, by=removal.by)
    return await submitted(state, term, context, Leaving(DECOMMISSION_NODE, decommission))


async def _hold_off(term: Term, status: NodeStatus, cordon: Cordon) -> None:
    if status.node.cordon is None:
        await term.nodes.set_cordon(status.node.node_id, cordon)


def _must_be_dead(status: NodeStatus) -> None:
    if status.state not in GONE:
        raise Conflict(
            "node-still-alive",
            node_id=status.node.node_id,
            lease_left_ms=status.lease_left_ms,
            state=status.state.value,
        )


async def _must_be_free(term: Term, status: NodeStatus) -> None:
    claims = await claims_of(term, status)
    if not claims.is_empty:
        raise Conflict("node-in-use", node_id=status.node.node_id, **_facts(term, claims))


def _facts(term: Term, claims: Claims) -> dict[str, object]:
    kept_ms = term.settings.values.drop_retention_ms
    dropped = [
        {
            "table_id": table.table_id,
            "name": table.name,
            "purged_at": time_of(table.dropped_at_ms + kept_ms),
        }
        for table in claims.dropped
    ]
    return {
        "what": "; ".join(claims.lines()),
        "leads": list(claims.leads[:FACTS_MAX]),
        "copies": list(claims.copies[:FACTS_MAX]),
        "dropped": dropped[:FACTS_MAX],
        "borrowed": list(claims.borrowed[:FACTS_MAX]),
        "procedures": list(claims.procedures[:FACTS_MAX]),
    }
