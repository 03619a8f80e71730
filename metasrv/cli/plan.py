"""A plan (`--dry-run`, `explain`) for people: a tree of its steps, and what is in their way."""

from collections import Counter
from collections.abc import Iterator, Sequence

import typer

from metasrv.cli.output import show_json, value_text
from metasrv_base.wire.api.plans import (
    BlockerBody,
    PlanBody,
    PlannedProcedure,
    PlannedStepBody,
)
from metasrv_base.wire.api.transitions import ShiftBody


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
    yield from (f"  lock  {lock.mode} {lock.key}" for lock in plan.locks)
    last = max((n for n, step in enumerate(plan.steps) if step.cancellable), default=None)
    for number, step in enumerate(plan.steps):
        yield f"  step {number + 1}: {step.step}{_eta(step.eta_s)}"
        yield from (f"    {line}" for line in _effects(step))
        if number == last:
            yield f"  -- can be cancelled until step {plan.last_cancellable_step} commits --"
    yield from (f"  {_words(blocker)}" for blocker in plan.blockers)
    yield from (f"  {line}" for line in _totals(plan))
    if isinstance(plan, PlanBody):
        yield from (f"  not restored: {each}" for each in plan.not_restored)
    yield from (f"  {line}" for child in plan.children for line in lines(child))


def _effects(step: PlannedStepBody) -> Iterator[str]:
    for drain in step.drains:
        who = ", ".join(drain.holders) or "nobody, now"
        yield f"wait  until none uses schema version {drain.schema_version - 1}: {who}"
    orders = Counter((order.op, order.node) for order in step.orders)
    for (op, node), regions in orders.items():
        ids = [order.region_id for order in step.orders if (order.op, order.node) == (op, node)]
        yield f"order {op} {f'region {ids[0]}' if regions == 1 else f'{regions} regions'} on {node}"
    for scan in step.scans:
        size = "" if scan.rows is None else f": {scan.rows:,} rows, {_bytes(scan.bytes or 0)}"
        yield f"job   {scan.job} of region {scan.region_id}{size}"
    for version in step.publishes:
        yield f"make  schema version {version.schema_version} from {version.schema_version - 1}"
        yield from (f"        {_shift(shift)}" for shift in version.shifts)
    for edit in step.edits:
        values = f"{value_text(edit.before)} -> {value_text(edit.after)}"
        yield f"set   {edit.attribute} of {edit.what} {edit.name}: {values}"
    yield from (f"put   {key}" for key in step.puts)
    yield from (f"del   {key}" for key in step.deletes)
    yield from (f"log   {entry}" for entry in step.log)


def _shift(shift: ShiftBody) -> str:
    return f"{shift.what} {shift.name}: {shift.before} -> {shift.after}"


def _words(blocker: BlockerBody) -> str:
    how = "waits for" if blocker.waits else "is stopped by"
    key = "" if blocker.key is None else f" ({blocker.key})"
    age_s = (blocker.transaction_age_ms or 0) / 1000
    held = "" if blocker.transaction is None else f", {blocker.transaction} open for {age_s:.1f} s"
    ends = "" if blocker.expires_in_s is None else f", at most {blocker.expires_in_s} s"
    return f"{how} {blocker.kind} {blocker.holder}{key}{held}{ends}"


def _totals(plan: PlannedProcedure) -> Iterator[str]:
    """The rows that are read, and the time that it takes, as far as either is known."""
    if plan.scan_rows:
        yield f"reads {plan.scan_rows:,} rows ({_bytes(plan.scan_bytes)}){_rate(plan)}"
    if not plan.complete:
        yield "does not get to its end as things are now"
    elif plan.eta_s is None:
        yield "takes as long as what is in its way"
    else:
        yield _takes(plan, plan.eta_s)


def _takes(plan: PlannedProcedure, eta_s: int) -> str:
    """No more than was measured: how long nodes take for an order, and Spark for its start, is not
    foreseen."""
    if plan.scan_rows:
        return f"takes about {max(1, eta_s)} s once Spark has started"
    if eta_s:
        return f"takes about {eta_s} s for what is in its way, and the time of the nodes"
    if any(step.orders for step in plan.steps) or plan.children:
        return "reads no rows; how long the nodes take is not known before"
    return "reads no rows and asks no node"


def _rate(plan: PlannedProcedure) -> str:
    if plan.scan_rows_per_s is None:
        return ""
    number = plan.scan_rate_reorgs
    how = f"measured over {number} earlier reorg{'s' * (number > 1)}" if number else "assumed"
    return f" at {plan.scan_rows_per_s:,} a second, {how}"


def _eta(seconds: int) -> str:
    return f" (about {seconds} s)" if seconds else ""


def _bytes(size: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size //= 1024
    return f"{size} GiB"
