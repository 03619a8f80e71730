"""A plan as the wire shows it. Pure."""

from typing import Any

from base.wire.plans import (
    BlockerBody,
    LockBody,
    PlanBody,
    PlannedOrderBody,
    PlannedProcedure,
    PlannedStepBody,
)
from metasrv.service.procedure_shapes import resource_body
from procedures.rehearsal.plan import Blocker, Obstacle, Plan, PlannedStep

_HELD = frozenset({Obstacle.LOCK, Obstacle.PAUSED, Obstacle.POISON})


def plan_body(plan: Plan, catalog_version: int) -> PlanBody:
    steps = [step for one in plan.family for step in one.steps]
    blockers = [blocker for one in plan.family for blocker in one.blockers]
    locked = [one.holder for one in blockers if one.kind in _HELD]
    return PlanBody(
        **_facts(plan),
        catalog_version=catalog_version,
        waits_for=tuple(dict.fromkeys(locked)),
        keys=tuple(sorted({key for step in steps for key in (*step.puts, *step.deletes)})),
        nodes=tuple(sorted({order.node for step in steps for order in step.orders})),
    )


def _facts(plan: Plan) -> dict[str, Any]:
    return {
        "kind": plan.kind,
        "resource": resource_body(plan.resource),
        "locks": tuple(LockBody(key=lock.key, mode=lock.mode.value) for lock in plan.locks),
        "steps": tuple(_step(step) for step in plan.steps),
        "last_cancellable_step": plan.last_cancellable_step,
        "blockers": tuple(_blocker(one) for one in plan.blockers),
        "complete": plan.ends,
        "children": tuple(PlannedProcedure(**_facts(child)) for child in plan.children),
    }


def _step(step: PlannedStep) -> PlannedStepBody:
    return PlannedStepBody(
        step=step.step,
        puts=step.puts,
        deletes=step.deletes,
        log=step.log,
        orders=tuple(
            PlannedOrderBody(node=one.node, op=one.op, region_id=one.region_id)
            for one in step.orders
        ),
        jobs=tuple(step.jobs),
    )


def _blocker(one: Blocker) -> BlockerBody:
    return BlockerBody(
        kind=one.kind.value,
        holder=one.holder,
        key=one.key,
        expires_in_s=None if one.expires_in_ms is None else -(-one.expires_in_ms // 1000),
        waits=one.waits,
    )
