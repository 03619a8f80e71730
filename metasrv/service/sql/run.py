"""SQL text carried out: its statements in order, each as the request of a route."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from keys.model.records import ProcedureHistory
from metasrv.service.requests.ddl_request import AlreadyAbsent, AlreadySatisfied, DdlRequest
from metasrv.service.requests.ended import error_of, planned_body, procedure_body
from metasrv.service.requests.request_context import WAIT_S_MAX, RequestContext
from metasrv.service.requests.submit_ddl import AcceptedChange, PlannedChange, execute
from metasrv.service.sql.faults import member_of_batch, with_place
from metasrv.service.sql.listings import listing
from metasrv.service.sql.script import StatementBlock, Unit, must_be_readable, units
from metasrv.service.sql.session import SqlSession, type_of
from metasrv.service.sql.sql_requests import batch_request, request_of
from metasrv.service.sql.views import selected
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.run_in_thread import run_in_thread
from metasrv_base.errors import MetaError
from metasrv_base.sql import commands as sql
from metasrv_base.sql.grammar.statements import Statement
from metasrv_base.wire.language.sql import SqlBody, SqlRequest, StatementResult, with_results
from procedures.steps.requirements import is_not_applied

SHORT_CHARS = 2_048
"""A text that is read on the event loop: within some 5 ms."""


async def run(state: ServerState, context: RequestContext, request: SqlRequest) -> SqlBody:
    """Reads all of the text, then carries its statements out, until one is not over when the
    client's time is. A client that names no time waits as long as one may.

    Raises Refused `invalid-sql` before anything is done; else the error of the first statement that
    fails, with its number, its place and the results of those before it, which are done.
    """
    context.require_no_version()
    is_short = len(request.text) <= SHORT_CHARS
    await run_in_thread(is_short, must_be_readable, request.text)
    wait_ms = WAIT_S_MAX * 1000 if context.wait_ms is None else context.wait_ms
    until_ms = state.clock.mono_ms() + wait_ms
    session = SqlSession(request.catalog, request.schema_name)
    following = units(request.text, lambda *of: type_of(state.follower.catalog, session, *of))
    results: list[StatementResult] = []
    number = 1
    while (unit := await run_in_thread(is_short, _next, following)) is not None:
        if results and results[-1].procedure is not None:
            return SqlBody(results=tuple(results), rest=unit.offset)
        left_ms = max(0, until_ms - state.clock.mono_ms())
        own = replace(context, wait_ms=left_ms, key=_key(context, number))
        try:
            results.append(await _Run(state, own, session, number).of(unit))
        except MetaError as error:
            raise with_results(error, results) from error
        number += len(unit.members) + 2 if isinstance(unit, StatementBlock) else 1
    return SqlBody(results=tuple(results))


def _next(following: Iterator[Unit]) -> Unit | None:
    return next(following, None)


def _key(context: RequestContext, number: int) -> str | None:
    """The idempotency key of one statement: no client can send such a key."""
    return None if context.key is None else f"{context.key}\n{number}"


@dataclass(frozen=True, slots=True)
class _Run:
    """One statement or batch, carried out."""

    state: ServerState
    context: RequestContext
    session: SqlSession
    number: int
    """Number of the statement in the text, from 1."""

    async def of(self, unit: Unit) -> StatementResult:
        if isinstance(unit, StatementBlock):
            return await self._batch(unit)
        statement = unit.statement
        if isinstance(statement.command, sql.SelectView):
            return await self._view(statement, statement.command)
        try:
            return await self._statement(statement)
        except MetaError as error:
            raise with_place(error, statement, self.number) from error

    async def _statement(self, statement: Statement) -> StatementResult:
        offset, command = statement.text.start, statement.command
        match command:
            case sql.Explain(change):
                context = replace(self._context(statement.text.text), dry_run=True)
                return await self._change(offset, request_of(context, self.session, change))
            case sql.Show() | sql.ShowCreateTable() | sql.DescribeTable():
                return self._listing(offset, command)
            case sql.Begin() | sql.Commit() | sql.SelectView():
                raise AssertionError("a script makes blocks of them, and `of` reads views")
            case _:
                context = self._context(statement.text.text)
                return await self._change(offset, request_of(context, self.session, command))

    async def _batch(self, block: StatementBlock) -> StatementResult:
        text = block.begin.text.source[block.offset : block.members[-1].text.end]
        try:
            request = batch_request(self._context(text), self.session, block.members)
            return await self._change(block.offset, request)
        except MetaError as error:
            member, pointer = member_of_batch(error)
            statement = block.members[member]
            raise with_place(error, statement, self.number + 1 + member, pointer) from error

    def _context(self, text: str) -> RequestContext:
        """The request of one statement, which is what the log keeps of it."""
        session = {"catalog": self.session.catalog, "schema": self.session.schema}
        return replace(self.context, body={"text": text, **session}, body_bytes=len(text))

    async def _view(self, statement: Statement, command: sql.SelectView) -> StatementResult:
        shown = await selected(self.state, statement, command, self.number)
        return StatementResult(
            offset=statement.text.start,
            catalog_version=shown.catalog_version,
            columns=shown.columns,
            types=shown.types,
            rows=shown.rows,
            is_cut=shown.is_cut and command.limit is None,
        )

    def _listing(
        self, offset: int, command: sql.Show | sql.ShowCreateTable | sql.DescribeTable
    ) -> StatementResult:
        catalog = self.state.follower.catalog
        shown = listing(catalog, self.session, command)
        return StatementResult(
            offset=offset,
            catalog_version=catalog.version,
            columns=shown.columns,
            types=shown.types,
            rows=shown.rows,
            is_cut=shown.is_cut,
        )

    async def _change(self, offset: int, request: DdlRequest) -> StatementResult:
        done = await execute(self.state, request)
        version = self.state.follower.catalog.version
        match done:
            case AcceptedChange():
                return self._accepted(offset, done)
            case PlannedChange():
                return StatementResult(offset=offset, plan=planned_body(done))
            case AlreadySatisfied() | AlreadyAbsent():
                return StatementResult(offset=offset, applied=False, catalog_version=version)

    def _accepted(self, offset: int, done: AcceptedChange) -> StatementResult:
        """Raises what the procedure ended with, if it did not succeed."""
        if not isinstance(done.latest, ProcedureHistory):
            body = procedure_body(self.state, done)
            return StatementResult(offset=offset, procedure_id=done.procedure, procedure=body)
        if (error := error_of(done.procedure, done.latest)) is not None:
            raise error
        return StatementResult(
            offset=offset,
            applied=not is_not_applied(done.latest.result),
            catalog_version=done.latest.catalog_version,
            procedure_id=done.procedure,
        )
