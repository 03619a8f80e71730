"""The outcome of a procedure, as an error or None. Pure."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from metasrv_base.errors import Conflict, MetaError
from metasrv_base.wire.problem.problems import KINDS

if TYPE_CHECKING:
    from metasrv_base.wire.api.procedures import ProcedureBody

STUCK = frozenset({"poisoned", "parked"})
"""States that are no end and that only a person ends."""

OnProgress = Callable[["ProcedureBody"], None]
"""Called with each state that was seen."""


def fault_of(procedure: "ProcedureBody") -> MetaError | None:
    """The error with which it ended, with `procedure_id`; None while it runs and when it
    succeeded."""
    if procedure.state == "succeeded" or not (procedure.done or procedure.state in STUCK):
        return None
    error = procedure.error
    kind = KINDS.get(error.code) if error is not None else None
    if error is None or kind is None:
        return Conflict(
            "action-not-allowed",
            change=procedure.kind,
            resource=procedure.resource.name,
            state=procedure.state,
            procedure_id=procedure.id,
            **_by_whom(procedure),
        )
    facts = {"detail": error.detail, **error.facts, "procedure_id": procedure.id}
    return kind.error(kind.code, **facts)


def _by_whom(procedure: "ProcedureBody") -> dict[str, str]:
    """The request that cancelled it, as the reason."""
    cancels = [control for control in procedure.controls if control.action == "cancel"]
    if procedure.state != "cancelled" or not cancels:
        return {}
    reason = f": {cancels[-1].reason}" if cancels[-1].reason else ""
    return {"reason": f"cancelled by {cancels[-1].by} at {cancels[-1].at}{reason}"}
