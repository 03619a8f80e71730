"""A plan (`--dry-run`) for people: its steps in order, its locks, and what is in its way."""

from collections.abc import Iterator, Sequence

import typer

from base.wire.plans import BlockerBody, PlanBody, PlannedProcedure, PlannedStepBody
from metasrv.cli.output import show_json


def show_plans(plans: Sequence[PlanBody], as_json: bool) -> None:
    if as_json:
        show_json(plans[0] if len(plans) == 1 else list(plans))
        return
    typer.echo("\n".join(line for plan in plans for line in lines(plan)))


def lines(plan: PlannedProcedure) -> Iterator[str]:
    """Children are set in, below all that is their parent's own."""
    resource = plan.resource
    if plan.kind is None:
        yield f"nothing to do: {resource.type} {resource.name} stands already"
        return
    yield f"{plan.kind} of {resource.type} {resource.name} ({resource.id})"
    for step in plan.steps:
        yield f"  step {step.step}"
        yield from (f"    {line}" for line in _effects(step))
    yield from (f"  lock  {lock.mode} {lock.key}" for lock in plan.locks)
    yield f"  can be cancelled until step {plan.last_cancellable_step} commits"
    yield from (f"  {_words(blocker)}" for blocker in plan.blockers)
    yield from (f"  {line}" for child in plan.children for line in lines(child))


def _effects(step: PlannedStepBody) -> Iterator[str]:
    yield from (f"order {one.op} region {one.region_id} on {one.node}" for one in step.orders)
    yield from (f"job   rows of region {region}" for region in step.jobs)
    yield from (f"put   {key}" for key in step.puts)
    yield from (f"del   {key}" for key in step.deletes)
    yield from (f"log   {entry}" for entry in step.log)


def _words(blocker: BlockerBody) -> str:
    how = "waits for" if blocker.waits else "is stopped by"
    key = "" if blocker.key is None else f" ({blocker.key})"
    ends = "" if blocker.expires_in_s is None else f", at most {blocker.expires_in_s} s"
    return f"{how} {blocker.kind} {blocker.holder}{key}{ends}"
