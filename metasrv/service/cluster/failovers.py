"""POST /v1/failovers: one procedure for a node, or one for each table and leader of the regions."""

from dataclasses import dataclass

from keys.model.records import ProcedureHistory
from metasrv.leadership.term import Term
from metasrv.service.cluster.failover_plan import (
    Leaving,
    Situation,
    plan_node,
    plan_regions,
    validate,
)
from metasrv.service.requests.ddl_request import in_the_way, locked
from metasrv.service.requests.planning import plan_of
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import (
    AcceptedChange,
    Patience,
    only_the_leader,
    replayed,
    stored,
    waited,
)
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.wire.api.procedures import FailoverRequest
from procedures.dry_run.plan import Plan
from procedures.engine.submit import SubmitRequest, Submitted
from procedures.kinds.failover.failover_node import FAILOVER_NODE


@dataclass(frozen=True, slots=True)
class FailoverPlan:
    """A dry run of a failover."""

    plans: tuple[Plan, ...]
    catalog_version: int


async def fail_over(
    state: ServerState, context: RequestContext, request: FailoverRequest
) -> tuple[AcceptedChange, ...] | FailoverPlan:
    """A repeated request finds the procedures of the first one, and adds those that it did not
    come to submit."""
    validate(request)
    context.require_no_version()
    patience = Patience.of(state, context)
    with only_the_leader():
        term = await state.leading()
        if context.dry_run:
            return await _plans(state, term, context, request)
        if request.node_id is not None:
            submissions: tuple[Submitted, ...] = (await _one_node(state, term, context, request),)
        else:
            submissions = await _some_regions(state, term, context, request)
        return tuple([await waited(term, submission, patience) for submission in submissions])


async def _plans(
    state: ServerState, term: Term, context: RequestContext, request: FailoverRequest
) -> FailoverPlan:
    facts = situation(state, term)
    if request.node_id is not None:
        planned: tuple[Leaving, ...] = (await by_turns(plan_node(request, facts)),)
    else:
        planned = plan_regions(request, request.region_ids or (), facts)
    plans = [
        await plan_of(
            term, leaving.kind, leaving.state, context.client(expected_epoch=leaving.expected_epoch)
        )
        for leaving in planned
    ]
    return FailoverPlan(tuple(plans), facts.catalog.version)


async def _one_node(
    state: ServerState, term: Term, context: RequestContext, request: FailoverRequest
) -> Submitted:
    """A node that is being failed over already: that procedure, whoever asked for it."""
    submission = await replayed(term, context)
    if submission is not None:
        return submission
    submission = under_way(term, request.node_id)
    if submission is not None:
        return submission
    planned = await by_turns(plan_node(request, situation(state, term)))
    return under_way(term, request.node_id) or await submitted(state, term, context, planned)


async def _some_regions(
    state: ServerState, term: Term, context: RequestContext, request: FailoverRequest
) -> tuple[Submitted, ...]:
    submissions = await _known(term, context)
    left = list(request.region_ids or ())
    for submission in submissions:
        covered = await _regions_of(term, submission.procedure)
        left = [region for region in left if region not in covered]
    planned = plan_regions(request, left, situation(state, term)) if left else ()
    for part, plan in enumerate(planned, start=len(submissions)):
        submissions.append(await submitted(state, term, context, plan, part))
    return tuple(submissions)


async def _known(term: Term, context: RequestContext) -> list[Submitted]:
    """Parts are submitted in order, so the first that is missing ends the search."""
    submissions: list[Submitted] = []
    while True:
        submission = await replayed(term, context, len(submissions))
        if submission is None:
            return submissions
        submissions.append(submission)


async def _regions_of(term: Term, procedure: str) -> frozenset[str]:
    entry = await term.manager.find(procedure)
    record = entry.last if isinstance(entry, ProcedureHistory) else entry.held.record
    return frozenset(record.state["region_ids"])


def under_way(term: Term, node_id: str | None, kind: str = FAILOVER_NODE.name) -> Submitted | None:
    """The procedure of that *kind* that the node has already."""
    for procedure, entry in term.manager.living():
        record = entry.held.record
        if record.kind == kind and record.resource.id == node_id:
            return Submitted(procedure, replayed=False)
    return None


async def submitted(
    state: ServerState, term: Term, context: RequestContext, planned: Leaving, part: int = 0
) -> Submitted:
    """Raises Conflict("object-locked") where it would queue and the client does not want that."""
    blockers = in_the_way(planned.kind.locks(planned.state), term.manager)
    if blockers and not context.queue:
        raise locked(blockers)
    client = context.client(part=part, expected_epoch=planned.expected_epoch)
    request = SubmitRequest(state.ids.procedure_id(), client, context.fingerprint)
    return await stored(state, term, planned.kind, planned.state, request)


def situation(state: ServerState, term: Term) -> Situation:
    return Situation(
        catalog=state.follower.catalog,
        statuses=term.nodes.statuses(),
        views=term.ports.placement.nodes(),
        maintenance=term.settings.maintenance,
    )
