"""Drain of a node: it takes no new region, and then leads none any more."""

from metasrv.leadership.term import Term
from metasrv.service.cluster.failover_plan import plan_drain
from metasrv.service.cluster.failovers import FailoverPlan, situation, submitted, under_way
from metasrv.service.cluster.node_changes import new_cordon
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
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.wire.api.cluster import DrainRequest
from procedures.kinds.moves.drain_node import DRAIN_NODE


async def drain(
    state: ServerState, context: RequestContext, node_id: str, request: DrainRequest
) -> tuple[AcceptedChange, ...] | FailoverPlan:
    """Cordons it, then moves its copies of regions with copies, and every other region it leads,
    each once its lease has ended (P4).

    A node that regions are leaving already: that procedure, whoever asked for it.
    """
    context.require_no_version()
    patience = Patience.of(state, context)
    with only_the_leader():
        term = await state.leading()
        submission = await replayed(term, context)
        if submission is None:
            facts = situation(state, term)
            planned = await by_turns(plan_drain(node_id, request, facts))
            if context.dry_run:
                plan = await plan_of(term, planned.kind, planned.state, context.client())
                return FailoverPlan((plan,), facts.catalog.version)
            await _hold_off(state, term, context, node_id, request.reason)
            running = under_way(term, node_id, DRAIN_NODE.name) or under_way(term, node_id)
            submission = running or await submitted(state, term, context, planned)
        return (await waited(term, submission, patience),)


async def _hold_off(
    state: ServerState, term: Term, context: RequestContext, node_id: str, reason: str
) -> None:
    """A cordon that stands already keeps its reason."""
    if term.nodes.entry(node_id).node.cordon is None:
        await term.nodes.set_cordon(node_id, new_cordon(state, context, reason))
