"""Decides whether a node takes an order: the rules of docs/protocols.md P3, without I/O."""

from dataclasses import dataclass
from typing import Any

from dataplane.datanode.orders.journal_format import (
    Dropped,
    Executed,
    JournalError,
    Record,
    TermSeen,
)
from dataplane.datanode.orders.node_state import JournalState
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable, Unknown
from metasrv_base.wire.node.orders import (
    CreateRegion,
    OpenRegion,
    Order,
    OrderError,
    OrderRequest,
    OrderResult,
)
from metasrv_base.wire.problem.problems import safe

Outcome = MetaError | int | None
"""The outcome of an order: its error; the row version at which a floor took hold, for an order that
raises one; else None."""


@dataclass(frozen=True, slots=True)
class Execute:
    """Do it now; `before` must be on disk first."""

    before: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerAgain:
    """Do nothing; this is the answer."""

    result: OrderResult


def admit(state: JournalState, term_seen: int, request: OrderRequest) -> None:
    """Whether a request is for this node at all. `term_seen` may run ahead of the journal.

    Raises Unavailable before the node has joined and for a term that no server has told it,
    Conflict `wrong-cluster` for another cluster or node, `stale-epoch` for a deposed leader.
    """
    must_be_for(state, request)
    if request.term < term_seen:
        reason = f"term {request.term} was deposed by term {term_seen}"
        raise Conflict("stale-epoch", term=request.term, current_term=term_seen, reason=reason)
    if request.term > term_seen:
        reason = "no metasrv server has told this node of that term"
        raise Unavailable(what="the order", term=request.term, known_term=term_seen, reason=reason)


def must_be_for(state: JournalState, request: OrderRequest) -> None:
    """The part of `admit` that does not depend on terms."""
    if state.cluster_id is None:
        raise Unavailable("not-ready", what=f"node {state.node_id}", reason="it has not joined yet")
    if request.cluster_id != state.cluster_id:
        raise Conflict("wrong-cluster", expected=state.cluster_id, found=request.cluster_id)
    if request.node_id != state.node_id:
        reason = f"this is node {state.node_id}, not {request.node_id}"
        raise Conflict("wrong-cluster", node_id=request.node_id, reason=reason)


def decide(state: JournalState, term: int, order: Order) -> Execute | AnswerAgain:
    """Decides on one order of an admitted request. The caller holds the region's lock."""
    last = state.executed.get(int(order.region_id))
    if last is not None and (term, order.number) <= (last.term, last.number):
        return AnswerAgain(_late_or_repeated(last, term, order))
    if int(order.region_id) in state.dropped and isinstance(order, CreateRegion | OpenRegion):
        return AnswerAgain(result_of(order, _dropped(order)))
    before: list[Record] = []
    if term > state.term:
        before.append(TermSeen(term=term))
    if order.op == "drop" and int(order.region_id) not in state.dropped:
        before.append(Dropped(region_id=order.region_id))
    return Execute(tuple(before))


def _late_or_repeated(last: Executed, term: int, order: Order) -> OrderResult:
    """Only the answer to a region's last order is kept. An earlier order of the same term is not
    done now, and was perhaps done before; who gave it gives it again, with a new number."""
    if term != last.term:
        facts = {"term": term, "current_term": last.term}
        return result_of(order, Conflict("stale-epoch", **facts))
    if order.number != last.number:
        facts = {"number": order.number, "current_number": last.number}
        return result_of(order, Unknown(reason="a later order of the region was done", **facts))
    if order.op != last.op:
        return result_of(order, Refused("invalid-request", op=order.op, executed_op=last.op))
    stored = last.error
    error = None if stored is None else OrderError(code=stored.code, facts=stored.facts)
    return OrderResult(
        number=order.number,
        region_id=order.region_id,
        error=error,
        floor_version=last.floor_version,
    )


def _dropped(order: Order) -> MetaError:
    return Conflict(
        "action-not-allowed", region_id=order.region_id, action=order.op, state="dropped"
    )


def result_of(order: Order, outcome: Outcome) -> OrderResult:
    if not isinstance(outcome, MetaError):
        number, region_id = order.number, order.region_id
        return OrderResult(number=number, region_id=region_id, floor_version=outcome)
    error = OrderError(code=outcome.code, facts=_shown(outcome.facts))
    return OrderResult(number=order.number, region_id=order.region_id, error=error)


def executed(term: int, order: Order, outcome: Outcome) -> Executed | None:
    """The record of an outcome; None: not an outcome, the same order may be tried again."""
    error = floor_version = None
    if isinstance(outcome, Refused | Conflict):
        error = JournalError(code=outcome.code, facts=_shown(outcome.facts))
    elif isinstance(outcome, MetaError):
        return None
    else:
        floor_version = outcome
    return Executed(
        region_id=order.region_id,
        term=term,
        number=order.number,
        op=order.op,
        error=error,
        floor_version=floor_version,
    )


def _shown(facts: dict[str, object]) -> dict[str, Any]:
    return {name: safe(value) for name, value in facts.items()}
