"""One DDL request from arrival to answer: replayed or planned, submitted, waited for if asked."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from keys.commit.committer import StaleRead
from keys.commit.txn import snapshot
from keys.model.records import Idempotency, IdempotencyKey, ProcedureHistory, ProcedurePhase
from metasrv.leadership.term import Term
from metasrv.service.requests.ddl_request import (
    AlreadyAbsent,
    AlreadySatisfied,
    DdlPlan,
    DdlRequest,
    ProcedureToSubmit,
    RequestFacts,
    in_the_way,
    locked,
    refuse_if_being_dropped,
    refuse_if_poisoned,
)
from metasrv.service.requests.planning import plan_of
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.standing import keep
from metasrv.service.state.state import ServerState
from metasrv_base.errors import MetaError, NotFound, NotLeader, Refused, Unavailable, Unknown
from metasrv_base.values.frozen import frozen
from procedures.dry_run.plan import Plan
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.submit import SubmitRequest, Submitted
from procedures.machine import Kind, ProcedureState

SILENT_DEADLINES = 4  # of one request to the store, until a client hears that nothing is known


@frozen
class AcceptedChange:
    """A request that is a procedure now: over, or as it stood when the client's wait ended."""

    procedure: str
    latest: ActiveProcedure | ProcedureHistory
    replayed: bool
    """The idempotency key was known: this is the procedure of the first request."""


@frozen
class PlannedRequest:
    """The procedure that a request leads to, if one is needed."""

    change: DdlPlan
    catalog_version: int


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A dry run. `plan`: what would be done; or what stands already."""

    plan: Plan | AlreadySatisfied | AlreadyAbsent
    catalog_version: int


@frozen
class Patience:
    """The time that a client waits for its answer."""

    state: ServerState
    until_ms: int
    """Monotonic."""

    @classmethod
    def of(cls, state: ServerState, context: RequestContext) -> "Patience":
        return cls(state, state.clock.mono_ms() + (context.wait_ms or 0))

    @property
    def left_ms(self) -> int:
        return max(0, self.until_ms - self.state.clock.mono_ms())


async def execute(
    state: ServerState, request: DdlRequest
) -> AcceptedChange | PlannedChange | AlreadySatisfied | AlreadyAbsent:
    """Durable when it returns `AcceptedChange`.

    Raises the error that the request is refused with; Unavailable where nobody leads; Unknown where
    the term ended before the store answered.
    """
    context = request.context
    patience = Patience.of(state, context)
    with only_the_leader():
        term = await state.leading()
        planned = await _replayed_or_planned(state, term, request, patience)
        if isinstance(planned, PlannedRequest):
            if context.dry_run:
                return await _dry_run(term, context, planned)
            if not isinstance(planned.change, ProcedureToSubmit):
                return await _kept(state, term, context, planned.change, patience)
            planned = await _submit(state, term, context, planned.change)
        return await waited(term, planned, patience)


async def _kept(
    state: ServerState,
    term: Term,
    context: RequestContext,
    no_change: AlreadySatisfied | AlreadyAbsent,
    patience: Patience,
) -> AcceptedChange | AlreadySatisfied | AlreadyAbsent:
    """Returns *no_change*; or the result of a request with the same key, if that one was faster."""
    silent_ms = SILENT_DEADLINES * state.facts.store_deadline_ms
    try:
        await keep(state, term, context, no_change, deadline_ms=silent_ms)
    except StaleRead:
        submission = await replayed(term, context)
        if submission is None:  # it has just expired
            return await _kept(state, term, context, no_change, patience)
        return await waited(term, submission, patience)
    return no_change


@contextmanager
def only_the_leader() -> Iterator[None]:
    """A term that ends before anything was sent: not attempted, and soon another leads."""
    try:
        yield
    except NotLeader as error:
        raise Unavailable("no-leader") from error


async def _replayed_or_planned(
    state: ServerState, term: Term, request: DdlRequest, patience: Patience
) -> Submitted | PlannedRequest:
    """The store is asked for the key only where no submission follows: that one compares the
    absence of the key itself. What the key's procedure did may be the very reason of a refusal."""
    try:
        planned = await _plan(state, term, request, patience)
    except MetaError:
        submission = await replayed(term, request.context)
        if submission is None:
            raise
        return submission
    if isinstance(planned, Submitted) or isinstance(planned.change, ProcedureToSubmit):
        return planned
    return await replayed(term, request.context) or planned


async def replayed(term: Term, context: RequestContext, part: int = 0) -> Submitted | None:
    """The procedure that this key belongs to already; None: it is new, or there is none.

    Raises Refused("idempotency-key-reused").
    """
    digest = context.digest(part)
    if digest is None or context.dry_run:
        return None
    key = IdempotencyKey(digest)
    reading = await snapshot(term.ports.kv, key, deadline_ms=term.ports.deadline_ms)
    record: Idempotency | None = reading.get(key)
    if record is None:
        return None
    if record.fingerprint != context.fingerprint:
        raise Refused("idempotency-key-reused", procedure_id=record.procedure)
    return Submitted(record.procedure, replayed=True)


async def _plan(
    state: ServerState, term: Term, request: DdlRequest, patience: Patience
) -> Submitted | PlannedRequest:
    """Plans the request on the catalog as it stands.

    A refusal that a living procedure could still make untrue is not given: its end is waited for,
    as long as the client waits; unless it is what the request asks for, as a second drop of one
    table, which is answered as the first is.
    """
    while True:
        facts = RequestFacts(
            state.follower.catalog, term.ports.placement.nodes(), state.clock.wall_ms()
        )
        refusal: MetaError | None = None
        try:
            planned = (
                await asyncio.to_thread(request.plan, facts)
                if request.is_long
                else request.plan(facts)
            )
        except MetaError as error:
            refusal, planned = error, None
        if isinstance(planned, ProcedureToSubmit):
            of_state = partial(planned.kind.locks, planned.state)
            locks = await asyncio.to_thread(of_state) if request.is_long else of_state()
            blockers = in_the_way(locks, term.manager)
            refuse_if_being_dropped(blockers)
            refuse_if_poisoned(blockers)
            if blockers and not request.context.queue and not request.context.dry_run:
                raise locked(blockers)
            return PlannedRequest(planned, facts.catalog.version)
        blockers = in_the_way(request.locks(facts.catalog), term.manager)
        refuse_if_poisoned(blockers)
        if not blockers and planned is not None:
            return PlannedRequest(planned, facts.catalog.version)
        if not blockers and refusal is not None:
            raise refusal
        is_missing = isinstance(refusal or planned, NotFound | AlreadyAbsent)
        if is_missing and _is_joined(request, blockers[0][1]):
            return Submitted(blockers[0][0], replayed=False)
        if not await _is_over(term, blockers[0][0], patience):
            raise locked(blockers)


def _is_joined(request: DdlRequest, first: ActiveProcedure) -> bool:
    record = first.held.record
    is_same = record.kind == request.joins and record.phase is ProcedurePhase.FORWARD
    may_queue = request.context.queue and not request.context.dry_run
    return is_same and may_queue


async def _is_over(term: Term, procedure: str, patience: Patience) -> bool:
    if patience.left_ms == 0:
        return False
    try:
        async with patience.state.while_serving():
            entry = await term.manager.wait(procedure, deadline_ms=patience.left_ms)
    except NotFound:
        return True
    except TimeoutError as error:
        raise Unavailable("no-leader") from error
    return isinstance(entry, ProcedureHistory)


async def _dry_run(term: Term, context: RequestContext, planned: PlannedRequest) -> PlannedChange:
    change = planned.change
    if not isinstance(change, ProcedureToSubmit):
        return PlannedChange(change, planned.catalog_version)
    procedure = change.state
    if change.sequence is not None:
        assert change.numbered is not None
        procedure = change.numbered(await term.sequences.peek(change.sequence))
    if change.sequences:
        first = {name: await term.sequences.peek(name) for name in set(change.sequences)}
        following = {name: count(number) for name, number in first.items()}
        procedure = await _renumbered(change, lambda name: next(following[name]))
    locks = change.kind.locks(procedure)
    if (refusal := term.manager.tenants.refusal(change.kind, procedure, locks)) is not None:
        raise refusal
    client = context.client(table_id=change.table_id)
    return PlannedChange(
        await plan_of(term, change.kind, procedure, client), planned.catalog_version
    )


async def _submit(
    state: ServerState, term: Term, context: RequestContext, change: ProcedureToSubmit
) -> Submitted:
    procedure = change.state
    if change.sequence is not None:
        assert change.numbered is not None
        term.committer.must_have_space()
        procedure = change.numbered(await term.sequences.next(change.sequence))
    if change.sequences:
        term.committer.must_have_space()
        ids = [await term.sequences.next(name) for name in change.sequences]
        procedure = await _renumbered(change, partial(_next, iter(ids)))
    client = context.client(table_id=change.table_id)
    request = SubmitRequest(state.ids.procedure_id(), client, context.fingerprint)
    return await stored(state, term, change.kind, procedure, request)


async def _renumbered(change: ProcedureToSubmit, next_id: Callable[[str], int]) -> ProcedureState:
    assert change.renumbered is not None
    if change.is_long:
        return await asyncio.to_thread(change.renumbered, next_id)
    return change.renumbered(next_id)


def _next(following: Iterator[int], _: str) -> int:
    return next(following)


async def stored(
    state: ServerState,
    term: Term,
    kind: Kind[Any],
    procedure: ProcedureState,
    request: SubmitRequest,
) -> Submitted:
    """Durable when it returns. Raises Unavailable("storage-full"): nothing was sent; Unknown: the
    store has been silent for long, and the submission is on its way all the same."""
    term.committer.must_have_space()
    try:
        async with asyncio.timeout(SILENT_DEADLINES * state.facts.store_deadline_ms / 1000):
            return await term.manager.submit(kind, procedure, request)
    except TimeoutError as error:
        raise Unknown("outcome-unknown", reason="the store has not answered") from error


async def waited(term: Term, submission: Submitted, patience: Patience) -> AcceptedChange:
    """Returns its procedure, over or as it stands when patience ends."""
    entry = await until_over(patience.state, term, submission.procedure, patience.left_ms)
    return AcceptedChange(submission.procedure, entry, submission.replayed)


async def until_over(
    state: ServerState, term: Term, procedure: str, deadline_ms: int
) -> ActiveProcedure | ProcedureHistory:
    """Over; or as it stands, once *deadline_ms* have passed or this server is told to end."""
    entry = term.manager.entry(procedure)
    if entry is not None:
        with suppress(TimeoutError):
            async with state.while_serving(deadline_ms):
                await entry.over.wait()
    return await term.manager.find(procedure)
