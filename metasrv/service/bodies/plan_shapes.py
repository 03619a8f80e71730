"""A plan as the wire shows it. Pure."""

from dataclasses import asdict
from typing import Any

from metasrv.service.bodies.procedure_shapes import resource_body
from metasrv.service.bodies.transition_shapes import shift_body
from metasrv_base.wire.api.plans import (
    BlockerBody,
    PlanBody,
    PlannedDrainBody,
    PlannedEditBody,
    PlannedLockBody,
    PlannedOrderBody,
    PlannedProcedure,
    PlannedScanBody,
    PlannedStepBody,
    PlannedVersionBody,
)
from procedures.dry_run.plan import Blocker, Obstacle, Plan, PlannedStep

_HELD = frozenset({Obstacle.LOCK, Obstacle.PAUSED, Obstacle.POISON})


def plan_body(plan: Plan, catalog_version: int) -> PlanBody:
    steps = [step for member in plan.family for step in member.steps]
    blockers = [blocker for member in plan.family for blocker in member.blockers]
    locked = [blocker.holder for blocker in blockers if blocker.kind in _HELD]
    return PlanBody(
        **_facts(plan),
        catalog_version=catalog_version,
        waits_for=tuple(dict.fromkeys(locked)),
        keys=tuple(sorted({key for step in steps for key in (*step.puts, *step.deletes)})),
        nodes=tuple(sorted({order.node for step in steps for order in step.orders})),
    )


def _facts(plan: Plan) -> dict[str, Any]:
    rows = sum(scan.rows or 0 for step in plan.steps for scan in step.scans)
    return {
        "kind": plan.kind,
        "resource": resource_body(plan.resource),
        "locks": tuple(PlannedLockBody(key=lock.key, mode=lock.mode.value) for lock in plan.locks),
        "steps": tuple(_step(step) for step in plan.steps),
        "last_cancellable_step": plan.last_cancellable_step,
        "scan_rows": rows,
        "scan_bytes": sum(scan.bytes or 0 for step in plan.steps for scan in step.scans),
        "scan_rows_per_s": plan.rate.rows_per_s if rows else None,
        "scan_rate_reorgs": plan.rate.reorgs if rows else 0,
        "eta_s": None if plan.eta_ms is None else _seconds(plan.eta_ms),
        "blockers": tuple(_blocker(blocker) for blocker in plan.blockers),
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
            PlannedOrderBody(node=order.node, op=order.op, region_id=order.region_id)
            for order in step.orders
        ),
        publishes=tuple(
            PlannedVersionBody(
                table_id=version.table_id,
                schema_version=version.schema_version,
                shifts=tuple(shift_body(shift) for shift in version.shifts),
            )
            for version in step.publishes
        ),
        edits=tuple(PlannedEditBody.model_validate(asdict(edit)) for edit in step.edits),
        drains=tuple(
            PlannedDrainBody(
                table_id=drain.table_id, schema_version=drain.schema_version, holders=drain.holders
            )
            for drain in step.drains
        ),
        scans=tuple(
            PlannedScanBody(
                job=scan.job, region_id=scan.region_id, rows=scan.rows, bytes=scan.bytes
            )
            for scan in step.scans
        ),
        cancellable=step.cancellable,
        eta_s=_seconds(step.eta_ms),
    )


def _blocker(blocker: Blocker) -> BlockerBody:
    return BlockerBody(
        kind=blocker.kind.value,
        holder=blocker.holder,
        key=blocker.key,
        expires_in_s=None if blocker.expires_in_ms is None else _seconds(blocker.expires_in_ms),
        waits=blocker.waits,
        transaction=blocker.transaction,
        transaction_age_ms=blocker.transaction_age_ms,
    )


def _seconds(ms: int) -> int:
    """Rounded up: what takes any time is not done at once."""
    return -(-ms // 1000)
