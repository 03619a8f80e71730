"""How a procedure ended, as an answer to the client that waited for it. Pure."""

from keys.model.records import ProcedureHistory, ProcedureOutcome
from metasrv_base.errors import Conflict, Corrupt, MetaError, Unavailable
from metasrv_base.wire.problem.problems import KINDS


def error_of(procedure: str, history: ProcedureHistory) -> MetaError | None:
    """Why it did not succeed, as it was raised; None: it did.

    It has been undone, so nothing is unknown any more: what its last step did not know is told as
    "not done" here.
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
    kind = KINDS.get(stored.code)
    facts = {**stored.facts, "procedure_id": procedure}
    if kind is None:
        return Corrupt("internal", **facts)
    if kind.code == "outcome-unknown":
        return Unavailable("not-ready", **{"what": "a node or the store", **facts})
    return kind.error(kind.code, **facts)
