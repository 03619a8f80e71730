"""Procedures as callers of the SDK ask for them, and the error of one that has ended. Pure."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from metasrv_base.errors import Conflict, MetaError
from metasrv_base.wire.problem.problems import KINDS

if TYPE_CHECKING:
    from metasrv_base.wire.api.procedures import ProcedureBody

STUCK = frozenset({"poisoned", "parked"})
"""States that are no end and that only a person ends."""

OnProgress = Callable[["ProcedureBody"], None]
"""Called with each state that was seen."""


class ProcedureFilters(TypedDict, total=False):
    """Only procedures of which all that is given holds."""

    state: str
    """Several with commas between."""
    kind: str
    """Several with commas between."""
    resource: str
    """Its name, or its type and id, as `table:1024`."""
    parent: str
    """The id of the procedure that began them."""
    since: str
    """RFC 3339, in UTC: begun then or later."""
    until: str
    """The end, as `since`: only procedures submitted before this time."""
    stalled: bool


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
