"""Dry runs: the plan of a change as things are now, with all that stands in its way."""

from collections.abc import Iterator, Sequence
from typing import Any

from keys.records import Lock, Submission
from metasrv.service.wishes import Living, conflicts
from metasrv.term import Term
from procedures.kinds.registry import KINDS
from procedures.machine import Kind, ProcedureState
from procedures.rehearsal.plan import Blocker, Obstacle, Plan
from procedures.rehearsal.rehearse import rehearse


async def plan_of(term: Term, kind: Kind[Any], state: ProcedureState, client: Submission) -> Plan:
    """Nothing is stored, no node hears of it. Raises Unavailable where the store is away."""
    living = term.manager.living()
    plan = await rehearse(KINDS, kind, state, client, term.ports)
    plan.blockers[:0] = _in_the_way(plan.locks, living)
    return plan


def _in_the_way(locks: Sequence[Lock], living: Living) -> Iterator[Blocker]:
    for procedure, key in conflicts(locks, living):
        yield Blocker(Obstacle.LOCK, procedure, key)
