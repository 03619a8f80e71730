"""Statements about rows carried out, in order, each as the statement of the routes that says it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.row_input import JsonRows, Op
from dataplane.frontend.service import FrontendService
from dataplane.frontend.sql.explained_writes import WRITE_EXPLAINED, explained_write
from dataplane.frontend.sql.faults import with_place
from dataplane.frontend.sql.read_statements import name_of, read_statements
from dataplane.frontend.sql.reading import RowQuery, rows_of
from dataplane.frontend.sql.selection import EXPLAINED, explained, selection
from dataplane.frontend.statements.writes import StatementTimes
from metasrv_base.concurrency.run_in_thread import is_small, run_in_thread
from metasrv_base.errors import Conflict, MetaError, Unavailable
from metasrv_base.rows.convert import json_column
from metasrv_base.rows.layout import LayoutColumn
from metasrv_base.rows.statement_ids import id_of_key
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.sql.rows.row_commands import (
    DeleteRow,
    ExplainRows,
    InsertRows,
    PlainCommand,
    RowStatement,
    SelectRows,
    UpdateRow,
)
from metasrv_base.wire.language.row_sql import RowSqlBody, RowSqlRequest, RowStatementResult
from metasrv_base.wire.language.sql import with_results

RESULT_BYTES_MAX = 16 << 20
"""The bound on the rows of all results of one request, in bytes of Arrow: a frontend has them in
memory until the last is there."""
RUN_MS_MAX = 5_000
"""The time after which no further statement of a request is begun: the rest is sent again."""
CATCH_UP_S_MAX = 2.0
"""The longest wait for the version of the catalog that the client has seen, in s."""


@dataclass(frozen=True, slots=True)
class SqlKey:
    """Names the request in all its copies, with the times of this one."""

    text: str
    times: StatementTimes

    def of(self, statement: RowStatement) -> str:
        """The id of one statement. It has the place of the statement: the rest of a text is
        carried out under the same key."""
        return id_of_key(f"{self.text}\n{statement.text.start}")


async def run(service: FrontendService, request: RowSqlRequest, key: SqlKey) -> RowSqlBody:
    """Reads all of the text, then carries its statements out, until the time of one request is
    over.

    Raises Refused `invalid-sql` before anything is done; else the error of the first statement that
    fails, with its number, its place and the results of those before it, which are done.
    """
    service.statements.holder.check()
    await _catch_up(service, request.min_catalog_version)
    statements = await read_statements(service.statements, request)
    clock = service.statements.clock
    until_ms = clock.mono_ms() + RUN_MS_MAX
    results: list[RowStatementResult] = []
    runner = _StatementRun(service, request, key)
    for number, statement in enumerate(statements, 1):
        if results and clock.mono_ms() >= until_ms:
            return RowSqlBody(results=tuple(results), rest=statement.text.start)
        try:
            results.append(await runner.of(statement))
        except MetaError as error:
            raise with_results(with_place(error, statement, number), results) from error
    return RowSqlBody(results=tuple(results))


async def _catch_up(service: FrontendService, version: int | None) -> None:
    """Raises Unavailable if this frontend does not hear of *version* soon."""
    if version is None:
        return
    try:
        async with asyncio.timeout(CATCH_UP_S_MAX):
            await service.statements.catalog.reached(version)
    except TimeoutError as error:
        facts = {"what": "the catalog of this frontend", "wanted": version}
        raise Unavailable("not-ready", **facts) from error


@dataclass(slots=True)
class _StatementRun:
    """The statements of one request, one after the other."""

    service: FrontendService
    request: RowSqlRequest
    key: SqlKey
    left_bytes: int = RESULT_BYTES_MAX
    """The bytes that further results may have."""

    async def of(self, statement: RowStatement) -> RowStatementResult:
        match statement.command:
            case UpdateRow(row=row):
                return await self._update(statement, row)
            case InsertRows() | DeleteRow() as write:
                return await self._write(statement, *_written(write))
            case SelectRows() as select:
                return await self._select(statement, select)
            case ExplainRows(command):
                return await self._explain(statement, command)

    async def _explain(self, statement: RowStatement, command: PlainCommand) -> RowStatementResult:
        """Nothing is read or written: the answer is the catalog's."""
        schema = await self.service.statements.known(self._name(statement))
        if isinstance(command, SelectRows):
            path = explained(selection(schema, statement, command), command)
            return self._listed(statement, EXPLAINED, (path,))
        op, rows = _written(command)
        catalog, table_id = self.service.statements.catalog, schema.layout.table_id
        lines = await run_in_thread(
            is_small(len(rows), 0),
            explained_write,
            schema,
            op,
            rows,
            lambda number: catalog.region(table_id, number),
        )
        return self._listed(statement, WRITE_EXPLAINED, lines)

    def _listed(
        self,
        statement: RowStatement,
        columns: Sequence[str],
        rows: Sequence[Sequence[JsonScalar]],
    ) -> RowStatementResult:
        return RowStatementResult(
            offset=statement.text.start,
            columns=tuple(columns),
            rows=tuple(map(tuple, rows)),
            catalog_version=self._version,
        )

    def _name(self, statement: RowStatement) -> Name:
        return name_of(self.request, statement.table)

    @property
    def _version(self) -> int | None:
        return self.service.statements.catalog.version

    async def _update(
        self, statement: RowStatement, row: Mapping[str, object]
    ) -> RowStatementResult:
        """SQL counts the rows that there are, where the route refuses an update of none."""
        try:
            return await self._write(statement, Op.UPDATE, [row])
        except Conflict as error:
            if error.code != "row-missing":
                raise
        return RowStatementResult(
            offset=statement.text.start, rows_written=0, catalog_version=self._version
        )

    async def _write(self, statement: RowStatement, op: Op, rows: JsonRows) -> RowStatementResult:
        id, times = self.key.of(statement), self.key.times
        done = await self.service.writes.rows(self._name(statement), op, rows, id, times)
        return RowStatementResult(
            offset=statement.text.start, rows_written=done.rows, catalog_version=self._version
        )

    async def _select(self, statement: RowStatement, select: SelectRows) -> RowStatementResult:
        """Reads all pages in one transaction, under one version of the schema."""
        statements = self.service.statements
        with statements.running(self.request.max_lag) as transaction:

            async def read(schema: Schema) -> tuple[Schema, pa.RecordBatch]:
                query = RowQuery(statement, select, self.left_bytes)
                call = statements.call(transaction)
                return schema, await rows_of(self.service.reads.regions, schema, query, call)

            schema = await statements.bound(transaction, self._name(statement))
            selection(schema, statement, select)
            schema, rows = await statements.finished(
                transaction, schema, read, lambda newer: selection(newer, statement, select)
            )
        self.left_bytes -= rows.nbytes
        columns = schema.layout.chosen(select.columns)
        is_short = is_small(rows.num_rows, rows.nbytes)
        return RowStatementResult(
            offset=statement.text.start,
            columns=tuple(column.name for column in columns),
            types=tuple(column.type.text for column in columns),
            rows=await run_in_thread(is_short, _json_rows, columns, rows),
            catalog_version=self._version,
        )


def _written(command: InsertRows | UpdateRow | DeleteRow) -> tuple[Op, JsonRows]:
    """The statement of the routes that says the same."""
    match command:
        case InsertRows(rows=rows):
            return Op.INSERT, rows
        case UpdateRow(row=row):
            return Op.UPDATE, [row]
        case DeleteRow(key=key):
            return Op.DELETE, [key]


def _json_rows(
    columns: Sequence[LayoutColumn], rows: pa.RecordBatch
) -> tuple[tuple[JsonScalar | None, ...], ...]:
    values = [json_column(column.type, rows.column(column.name)) for column in columns]
    return tuple(zip(*values, strict=True))
