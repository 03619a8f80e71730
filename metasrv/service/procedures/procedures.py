"""Procedures for people: watch one, steer one. (Their list: procedure_list.py.)"""

from contextlib import suppress
from dataclasses import dataclass

from keys.model.records import ProcedureHistory
from metasrv.leadership.term import Term
from metasrv.service.bodies.procedure_shapes import ended_body, living_body, procedure_etag
from metasrv.service.requests.submit_ddl import only_the_leader, until_over
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotFound
from metasrv_base.ids import UUID_TEXT
from metasrv_base.wire.api.procedures import ProcedureBody
from procedures.dry_run.controls import foresee
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Command

LOOK_MS = 1_000  # progress is memory that nobody announces: a long poll looks this often


@dataclass(frozen=True, slots=True)
class Shown:
    body: ProcedureBody
    etag: str


async def get(
    state: ServerState, procedure: str, *, unlike: str | None = None, wait_ms: int = 0
) -> Shown:
    """Returns a procedure once it has ended, or, with *unlike*, an ETag, once it differs; as it is
    after *wait_ms*, or when this server ends."""
    term = await state.leading()
    _must_be_an_id(procedure)
    until = state.clock.mono_ms() + wait_ms
    while True:
        entry = await term.manager.find(procedure)
        etag = procedure_etag(entry)
        left = 0 if state.is_stopping else until - state.clock.mono_ms()
        has_moved = unlike is not None and etag != unlike
        if has_moved or left <= 0 or isinstance(entry, ProcedureHistory):
            return Shown(_body(state, term, procedure, entry), etag)
        with suppress(TimeoutError):  # we were told to end: answered as it stands
            async with state.while_serving():
                await term.manager.changed(deadline_ms=min(left, LOOK_MS))


async def control(
    state: ServerState, procedure: str, command: Command, wait_ms: int = 0, *, dry_run: bool = False
) -> Shown:
    """Answered once it is stored; then waits for the end as long as the client does. A dry run: as
    it would be answered, and nothing is stored."""
    with only_the_leader():
        term = await state.leading()
        _must_be_an_id(procedure)
        term.committer.must_have_space()
        if dry_run:
            would_be = await foresee(term.manager, procedure, command)
            return Shown(_body(state, term, procedure, would_be), procedure_etag(would_be))
        entry = await term.manager.control(procedure, command)
        if wait_ms:
            entry = await until_over(state, term, procedure, wait_ms)
        return Shown(_body(state, term, procedure, entry), procedure_etag(entry))


def _must_be_an_id(procedure: str) -> None:
    if not UUID_TEXT.fullmatch(procedure):
        raise NotFound("procedure-not-found", procedure_id=procedure)


def _body(
    state: ServerState, term: Term, procedure: str, entry: ActiveProcedure | ProcedureHistory
) -> ProcedureBody:
    if isinstance(entry, ProcedureHistory):
        return ended_body(procedure, entry)
    children = term.manager.locks.children(procedure)
    return living_body(procedure, entry, state.clock.wall_ms(), children)
