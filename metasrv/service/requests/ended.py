"""A change as it stands, planned or over, and the error with which it ended."""

from keys.model.records import ProcedureHistory, ProcedureOutcome
from metasrv.service.bodies.plan_shapes import plan_body
from metasrv.service.bodies.procedure_shapes import ended_body, living_body
from metasrv.service.requests.ddl_request import AlreadyAbsent, AlreadySatisfied
from metasrv.service.requests.submit_ddl import AcceptedChange, PlannedChange
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Conflict, Corrupt, MetaError, Unavailable
from metasrv_base.wire.api.plans import PlanBody
from metasrv_base.wire.api.procedures import ProcedureBody, ResourceBody
from metasrv_base.wire.problem.problems import KINDS as PROBLEMS


def error_of(procedure: str, history: ProcedureHistory) -> MetaError | None:
    """Returns the error with which a procedure ended; None: it succeeded.

    The procedure has been undone, so nothing is unknown any more: an error "perhaps done" of its
    last step becomes "not done" here.
    """
    if history.outcome is ProcedureOutcome.SUCCEEDED:
        return None
    stored = history.last.error
    if history.outcome is ProcedureOutcome.CANCELLED or stored is None:
        return Conflict(
            "action-not-allowed",
            procedure_id=procedure,
            change=history.last.kind,
            state="cancelled",
        )
    kind = PROBLEMS.get(stored.code)
    facts = {**stored.facts, "procedure_id": procedure}
    if kind is None:
        return Corrupt("internal", **facts)
    if kind.code == "outcome-unknown":
        return Unavailable("not-ready", **{"what": "a node or the store", **facts})
    return kind.error(kind.code, **facts)


def procedure_body(state: ServerState, done: AcceptedChange) -> ProcedureBody:
    if isinstance(done.latest, ProcedureHistory):
        return ended_body(done.procedure, done.latest)
    return living_body(done.procedure, done.latest, state.clock.wall_ms())


def planned_body(done: PlannedChange) -> PlanBody:
    """The plan of a change; of one that would change nothing, its object."""
    if isinstance(done.plan, AlreadySatisfied | AlreadyAbsent):
        existing = done.plan.resource
        resource = ResourceBody(type=existing.type, id=existing.id, name=existing.name)
        return PlanBody(kind=None, resource=resource, catalog_version=done.catalog_version)
    return plan_body(done.plan, done.catalog_version)
