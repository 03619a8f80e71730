"""POST /v1/nodes/{node}/decommission: a node leaves for good, once nothing names it any more."""

from keys.model.cluster import Cordon, Removal, RemovedNode
from metasrv.leadership.retirement import claims_of
from metasrv.leadership.term import Term
from metasrv.nodes.claims import Claims
from metasrv.nodes.status import GONE, NodeState, NodeStatus, status_of_removed
from metasrv.service.bodies.shapes import time_of
from metasrv.service.cluster.nodes import node_body
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.cluster import DecommissionRequest, NodeBody

FACTS_MAX = 20  # of each sort, as an answer shows them; `what` counts them all


async def decommission(
    state: ServerState, asked: RequestContext, node_id: str, request: DecommissionRequest
) -> NodeBody:
    """Durable when it is answered. Of a node that is removed already: as it was removed.

    Raises NotFound; Conflict("node-in-use") with all that names it; Conflict("node-still-alive")
    for a disk that is said to be gone, of a node that is heard.
    """
    asked.require_no_version()
    with only_the_leader():
        term = await state.leading()
        status = term.nodes.node(node_id)
        if status.state is NodeState.REMOVED:
            return node_body(status, state.follower.catalog)
        await _must_be_free(term, status, request)
        at_ms = state.clock.wall_ms()
        removal = Removal(at_ms=at_ms, by=asked.principal, reason=request.reason, lost=request.lost)
        if asked.dry_run:
            would_be = status_of_removed(RemovedNode(node=status.node, removal=removal))
            return node_body(would_be, state.follower.catalog)
        cordon = Cordon(reason=request.reason, by=asked.principal, at_ms=at_ms)
        await _hold_off(term, status, cordon)
        await _must_be_free(term, status, request)  # what chose it before the cordon is here by now
        await term.nodes.remove(node_id, removal, must_be_empty=not request.lost)
        return node_body(term.nodes.node(node_id), state.follower.catalog)


async def _hold_off(term: Term, status: NodeStatus, cordon: Cordon) -> None:
    if status.node.cordon is None:
        await term.nodes.set_cordon(status.node.node_id, cordon)


async def _must_be_free(term: Term, status: NodeStatus, request: DecommissionRequest) -> None:
    node_id = status.node.node_id
    if request.lost and status.state not in GONE:
        raise Conflict(
            "node-still-alive",
            node_id=node_id,
            lease_left_ms=status.lease_left_ms,
            state=status.state.value,
        )
    found = await claims_of(term, status)
    left = found.without_disk if request.lost else found
    if not left.is_empty:
        raise Conflict("node-in-use", node_id=node_id, **_facts(term, left))


def _facts(term: Term, claims: Claims) -> dict[str, object]:
    kept_ms = term.settings.values.drop_retention_ms
    dropped = [
        {
            "table_id": one.table_id,
            "name": one.name,
            "purged_at": time_of(one.dropped_at_ms + kept_ms),
        }
        for one in claims.dropped
    ]
    return {
        "what": "; ".join(claims.lines()),
        "leads": list(claims.leads[:FACTS_MAX]),
        "dropped": dropped[:FACTS_MAX],
        "borrowed": list(claims.borrowed[:FACTS_MAX]),
        "procedures": list(claims.procedures[:FACTS_MAX]),
    }
