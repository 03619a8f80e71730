"""A dry run: the runner drives the very steps of the kind over a draft of the store.

So the plan cannot differ from the run but by what moves in between: both are what the steps return.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from keys.commit.txn import Stamp
from keys.model.families import family_of
from keys.model.records import ClientRequirements as Client
from keys.model.records import ProcedureHistoryKey, ProcedureKey
from metasrv_base.errors import MetaError
from procedures.context import Context, Ports
from procedures.dry_run.dry_run_ports import AheadClock, DryRunPorts, StageChildren
from procedures.dry_run.estimates import UNKNOWN, Estimates
from procedures.dry_run.live_ahead import LiveAhead
from procedures.dry_run.notes import Notes
from procedures.dry_run.overlay_store import OverlayStore
from procedures.dry_run.plan import Blocker, Obstacle, Plan, PlannedStep, PlannedVersion
from procedures.elements.transition_notes import Passages
from procedures.engine import record_transitions
from procedures.engine.retry import is_bound_to_finish, is_passing
from procedures.engine.runner import Runner, StoredRecord
from procedures.machine import Kind, ProcedureState

STEPS_MAX = 1_024  # commits of one plan with its children: a dry run is a read, not a day's work
BOOKKEEPING = (ProcedureKey, ProcedureHistoryKey)  # under an id that no client has heard of


@dataclass
class Rehearsal:
    """A dry run of a procedure with all its children."""

    kinds: Mapping[str, Kind[Any]]
    real: Ports
    draft: OverlayStore
    clock: AheadClock
    client: Client
    estimates: Estimates
    steps_left: int = STEPS_MAX

    async def of(
        self, procedure: str, kind: Kind[Any], state: ProcedureState, parent: str | None = None
    ) -> Plan:
        plan = Plan(
            kind=kind.name,
            resource=kind.resource(state),
            locks=kind.locks(state),
            last_cancellable_step=kind.no_return,
            rate=self.estimates.rate,
        )
        stage = DryRunPorts.of(self.real, self.draft, self.clock, self.estimates.size_of)
        stamp = Stamp(None, 0, self.clock.wall_ms())
        record = record_transitions.begin(kind, state, self.client, stamp, parent=parent)
        runner = Runner(stage.ports, self.draft)
        children = StageChildren(partial(self._child, procedure, plan), stage.notes)
        held = StoredRecord(procedure, record, 0)
        while not plan.ends:
            if self.steps_left == 0:
                plan.blockers.append(Blocker(Obstacle.TOO_LONG, f"more than {STEPS_MAX} steps"))
                return plan
            self.steps_left -= 1
            step = held.record.step
            notes = stage.notes.clear()
            client = held.record.client
            live = LiveAhead(notes, self.draft, self.clock, self.real.deadline_ms)
            has_passed = kind.has_passed(held.record.trail)
            context = Context(
                stage.ports, children, procedure, step, client, live, has_passed=has_passed
            )
            try:
                after = await runner.advance(kind, held, context)
            except MetaError as error:
                self.draft.must_be_readable()
                waits = is_bound_to_finish(kind, held.record) or is_passing(error)
                refusal = Blocker(Obstacle.REFUSED, error.code, waits=waits)
                plan.blockers += notes.waits or [refusal]
                return plan
            planned = self._committed(step, notes, context.passages)
            planned.cancellable = not kind.has_passed(
                tuple(planned_step.step for planned_step in plan.steps)
            )
            plan.steps.append(planned)
            plan.blockers += notes.waits
            if isinstance(after, StoredRecord):
                held = after
            else:
                plan.ends = True
        if kind.no_return not in {planned_step.step for planned_step in plan.steps}:
            plan.last_cancellable_step = step  # it is over before it gets there
        return plan

    async def _child(
        self, parent: str, of: Plan, procedure: str, kind: str, state: dict[str, object]
    ) -> Plan:
        model = self.kinds[kind].state.model_validate(state)
        plan = await self.of(procedure, self.kinds[kind], model, parent)
        of.children.append(plan)
        return plan

    def _committed(self, step: str, notes: Notes, passages: Passages) -> PlannedStep:
        drafted = self.draft.commits[-1]
        shown = {
            k.decode(): v for k, v in drafted.writes.items() if family_of(k) not in BOOKKEEPING
        }
        return PlannedStep(
            step=step,
            puts=tuple(sorted(key for key, value in shown.items() if value is not None)),
            deletes=tuple(sorted(key for key, value in shown.items() if value is None)),
            log=tuple(entry.op for entry in drafted.entries),
            edits=drafted.edits,
            orders=list(notes.orders),
            scans=list(notes.scans),
            publishes=tuple(
                PlannedVersion(version.table_id, version.schema_version, version.shifts)
                for version in passages.published
            ),
            drains=list(notes.drains),
            eta_ms=self._eta_ms(notes),
        )

    def _eta_ms(self, notes: Notes) -> int:
        """Returns the estimate of a step, in ms: the longest of its waits, which run at once,
        plus the reads of all jobs at one rate."""
        waits = [blocker.expires_in_ms or 0 for blocker in notes.waits]
        rows = sum(scan.rows or 0 for scan in notes.scans)
        return max(waits, default=0) + rows * 1000 // self.estimates.rate.rows_per_s


@dataclass(frozen=True, slots=True)
class DryRunRequest:
    """A change to rehearse, with its client."""

    kind: Kind[Any]
    state: ProcedureState
    client: Client


async def dry_run(
    kinds: Mapping[str, Kind[Any]],
    request: DryRunRequest,
    ports: Ports,
    estimates: Estimates = UNKNOWN,
) -> Plan:
    """The plan of *request* as things are now; nothing is stored, no node hears of it.

    Raises Unavailable where the store cannot be read.
    """
    clock = AheadClock(ports.clock)
    rehearsal = Rehearsal(
        kinds, ports, OverlayStore(ports.kv, clock), clock, request.client, estimates
    )
    return await rehearsal.of(ports.ids.procedure_id(), request.kind, request.state)
