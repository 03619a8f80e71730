"""`POST /v1/apply`: the plan that leads to a desired state, and as far as time allows, its steps.

Each step is the request of the route that makes it, one after the other; the plan is kept nowhere.
Whoever asks again has what is left of it (docs/decisions/0287).
"""

import asyncio
from dataclasses import dataclass, field, replace

from keys.model.records import ProcedureHistory
from metasrv.leadership.term import Term
from metasrv.service.apply.apply_plan import (
    ApplyPlan,
    must_be_allowed,
    plan_changed,
    plan_of,
    state_of,
)
from metasrv.service.apply.apply_requests import request_of, step_context
from metasrv.service.apply.sql_desired import SqlDesired, placed, with_sql
from metasrv.service.bodies.procedure_shapes import living_body
from metasrv.service.declared.declared_errors import must_be_right
from metasrv.service.declared.steps import PlanStep
from metasrv.service.requests.ddl_request import (
    DdlRequest,
    in_the_way,
    refuse_if_being_dropped,
    refuse_if_poisoned,
)
from metasrv.service.requests.ended import error_of, procedure_body
from metasrv.service.requests.request_context import WAIT_S_MAX, RequestContext
from metasrv.service.requests.submit_ddl import (
    AcceptedChange,
    execute,
    only_the_leader,
    until_over,
)
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import slices
from metasrv_base.errors import MetaError
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.language.apply import AppliedStep, ApplyBody, ApplyRequest


async def run(state: ServerState, context: RequestContext, request: ApplyRequest) -> ApplyBody:
    """Computes the plan; in mode `apply` does its steps until one is not over when the client's
    time is. A client that names no time waits as long as one may.

    Raises Refused `invalid-sql` and others for a desired state that cannot be, `not-in-place`,
    `destructive-plan`; Conflict `plan-changed`; else the error of the first step that fails, with
    its operation: the steps before it are done.
    """
    context.require_no_version()
    source = await asyncio.to_thread(_desired, request)
    wait_ms = WAIT_S_MAX * 1000 if context.wait_ms is None else context.wait_ms
    running = _Apply(state, context, request, source, state.clock.mono_ms() + wait_ms)
    with only_the_leader():
        term = await state.leading()
        if request.mode == "plan" or context.dry_run:
            plan = await running.planned()
            blocker = await running.blocker(term, plan)
            return running.body(plan, plan.digest, blocker)
        return await running.done(term)


def _desired(request: ApplyRequest) -> SqlDesired:
    """Raises Refused with every fault that needs no catalog."""
    source = with_sql(request.desired, request.sql)
    try:
        must_be_right(source.desired)
    except MetaError as error:
        raise placed(error, source.places) from error
    return source


@dataclass(slots=True)
class _Apply:
    state: ServerState
    context: RequestContext
    request: ApplyRequest
    source: SqlDesired
    until_ms: int
    steps: list[AppliedStep] = field(default_factory=list)
    under_way: int = 0
    """Operations of the step that is not over."""

    async def planned(self) -> ApplyPlan:
        catalog, desired = self.state.follower.catalog, self.source.desired
        try:
            return await asyncio.to_thread(plan_of, catalog, desired, prune=self.request.prune)
        except MetaError as error:
            raise placed(error, self.source.places) from error

    async def done(self, term: Term) -> ApplyBody:
        plan = await self.planned()
        while (blocker := await self.blocker(term, plan)) is not None:
            self._must_be_it(plan)
            if self._left_ms() == 0:
                return self.body(plan, plan.digest, blocker)
            await until_over(self.state, term, blocker.id, self._left_ms())
            plan = await self.planned()
        self._must_be_it(plan)
        if not self.request.allow_destructive:
            must_be_allowed(plan)
        if (procedure := await self._carried_out(plan)) is not None:
            start = sum(step.operations for step in self.steps) + self.under_way
            return self.body(plan, plan.rest_from(start), procedure, is_own=True)
        left = await self.planned()
        if left.operations:
            raise plan_changed(left)
        return self.body(plan, left.digest)

    def _must_be_it(self, plan: ApplyPlan) -> None:
        """Raises Conflict `plan-changed`."""
        if self.request.plan_hash not in (None, plan.digest, plan.rest):
            raise plan_changed(plan)

    async def blocker(self, term: Term, plan: ApplyPlan) -> ProcedureBody | None:
        """A change under way at an object of the plan. Raises Conflict where only a person can end
        it, or where it drops what the plan is about."""
        catalog = self.state.follower.catalog
        requests = await asyncio.to_thread(_requests, self.context, plan)
        for some in slices(requests, 64):
            locks = [lock for request in some for lock in request.locks(catalog)]
            blockers = in_the_way(locks, term.manager)
            refuse_if_being_dropped(blockers)
            refuse_if_poisoned(blockers)
            if blockers:
                procedure, entry = blockers[0]
                return living_body(procedure, entry, self.state.clock.wall_ms())
            await asyncio.sleep(0)
        return None

    async def _carried_out(self, plan: ApplyPlan) -> ProcedureBody | None:
        """Does the steps; returns the procedure of the first that is not over in time."""
        start, changed = 0, set[tuple[str, str]]()
        for step in plan.steps:
            accepted = await self._step(plan, step, start, changed)
            if accepted is not None:
                self.under_way = len(step.operations)
                return accepted
            start += len(step.operations)
            changed |= {(each.target.what, each.target.name) for each in step.operations}
        return None

    async def _step(
        self, plan: ApplyPlan, step: PlanStep, start: int, changed: set[tuple[str, str]]
    ) -> ProcedureBody | None:
        """Does one step. *changed*: objects that the steps before it have changed; the others must
        be as they were. None: it is over."""
        catalog, length = self.state.follower.catalog, len(step.operations)
        states = tuple(state_of(catalog, each) for each in step.operations)
        if any(
            now != then and (each.target.what, each.target.name) not in changed
            for each, now, then in zip(
                step.operations, states, plan.states[start : start + length], strict=True
            )
        ):
            raise plan_changed(await self.planned())
        context = replace(self.context, wait_ms=self._left_ms(), dry_run=False)
        own = await asyncio.to_thread(step_context, context, plan, start, length, states)
        try:
            request = await asyncio.to_thread(request_of, own, step)
            done = await execute(self.state, request)
            if isinstance(done, AcceptedChange):
                if not isinstance(done.latest, ProcedureHistory):
                    return procedure_body(self.state, done)
                if (error := error_of(done.procedure, done.latest)) is not None:
                    raise error
        except MetaError as error:
            raise _of_step(error, step, len(self.steps)) from error
        procedure = done.procedure if isinstance(done, AcceptedChange) else None
        version = self.state.follower.catalog.version
        self.steps.append(
            AppliedStep(operations=length, procedure_id=procedure, catalog_version=version)
        )
        return None

    def _left_ms(self) -> int:
        return max(0, self.until_ms - self.state.clock.mono_ms())

    def body(
        self,
        plan: ApplyPlan,
        digest: str,
        procedure: ProcedureBody | None = None,
        *,
        is_own: bool = False,
    ) -> ApplyBody:
        return ApplyBody(
            operations=plan.shown,
            plan_hash=digest,
            steps=tuple(self.steps),
            procedure=procedure,
            is_own=is_own,
            catalog_version=self.state.follower.catalog.version,
        )


def _requests(context: RequestContext, plan: ApplyPlan) -> list[DdlRequest]:
    """The requests of all steps, for the locks that they need."""
    return [request_of(context, step) for step in plan.steps]


def _of_step(error: MetaError, step: PlanStep, done: int) -> MetaError:
    """The same error, with the operations that it is about, and the number of steps that are
    done."""
    number = error.facts.get("command")
    first = step.operations[number if isinstance(number, int) else 0]
    more = {"operation": first.text, "of": f"{first.target.what} {first.target.name}"}
    return type(error)(error.code, **{**error.facts, **more, "steps_done": done})
