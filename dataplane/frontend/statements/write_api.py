"""Statements that write: rows of one body, or a stream of batches."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.lease.transactions import Transaction
from dataplane.frontend.metrics import FrontendMetrics
from dataplane.frontend.planning.row_input import JsonRows, Op, RowInput, from_arrow, from_rows
from dataplane.frontend.statements.statements import Statements
from dataplane.frontend.statements.write_executor import WriteExecutor, WriteRequest
from metasrv_base.concurrency.run_in_thread import is_short_columnar, is_small
from metasrv_base.errors import Conflict, MetaError
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.outcome import RegionOutcome, WriteResult
from metasrv_base.rows.places import moved
from metasrv_base.rows.statement_ids import id_of_batch


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    rows: int
    schema_version: int
    regions: tuple[RegionOutcome, ...]

    @property
    def region_ids(self) -> tuple[str, ...]:
        return tuple(part.region_id for part in self.regions)


@dataclass(frozen=True, slots=True)
class WriteApi:
    statements: Statements
    writing: WriteExecutor
    metrics: FrontendMetrics

    async def rows(
        self,
        name: Name,
        op: Op,
        rows: JsonRows,
        statement_id: str,
        sent_ms: int | None = None,
    ) -> WriteOutcome:
        """*sent_ms*: when its first sender made it; None: its arrival at each region counts.

        Raises what `settle` says (metasrv_base/rows/outcome.py), and Refused before anything is
        sent."""
        with self.statements.running() as transaction:
            schema = await self.statements.bound(transaction, name)
            read = partial(_from_rows, rows, op)
            short = is_small(len(rows), 0)
            wish = self._wish(transaction, op, read, statement_id)
            wish = replace(wish, sent_ms=sent_ms, is_short=short)
            done, version = await self._write(schema, wish)
        return WriteOutcome(done.rows, version, done.regions)

    async def stream(
        self,
        name: Name,
        op: Op,
        batches: Callable[[Callable[[], float]], AsyncIterator[pa.RecordBatch]],
        statement_id: str,
        sent_ms: int | None = None,
    ) -> WriteOutcome:
        """Batch by batch as they come, each atomic within a region. Ends at the first that cannot
        be applied; the error says how many rows were."""
        rows, offset, regions = 0, 0, dict[str, RegionOutcome]()
        statements = self.statements
        with statements.running() as transaction:
            schema = await statements.bound(transaction, name)
            try:
                number = 0
                async for batch in batches(partial(statements.left_s, transaction)):
                    statements.check_age(transaction)
                    read = partial(_from_arrow, batch, op)
                    id = id_of_batch(statement_id, number)
                    short = _is_short(schema, batch)
                    wish = self._wish(transaction, op, read, id)
                    wish = replace(wish, sent_ms=sent_ms, is_short=short)
                    try:
                        done, _ = await self._write(schema, wish)
                    except MetaError as error:
                        raise moved(error, offset, batch.num_rows) from error
                    schema = statements.catalog.latest(schema)
                    rows, number, offset = rows + done.rows, number + 1, offset + batch.num_rows
                    regions |= {part.region_id: _added(regions, part) for part in done.regions}
            except TimeoutError as error:
                limit_s = statements.transactions.age_max_ms / 1000
                raise Conflict("transaction-too-old", limit_s=limit_s, rows_applied=rows) from error
            except MetaError as error:
                raise _counted(error, rows) from error
        return WriteOutcome(rows, schema.version, tuple(regions.values()))

    def _wish(
        self, transaction: Transaction, op: Op, read: Callable[[Layout], RowInput], id: str
    ) -> WriteRequest:
        bind = partial(self.statements.bind, transaction)
        return WriteRequest(op, read, id, self.statements.call(transaction).until, bind)

    async def _write(self, schema: Schema, wish: WriteRequest) -> tuple[WriteResult, int]:
        done, version = await self.writing.run(schema, wish)
        self.metrics.rows.labels(wish.op).inc(done.rows)
        return done, version


def _from_rows(rows: JsonRows, op: Op, layout: Layout) -> RowInput:
    return from_rows(layout, rows, op)


def _from_arrow(batch: pa.RecordBatch, op: Op, layout: Layout) -> RowInput:
    return from_arrow(layout, batch, op)


def _is_short(schema: Schema, batch: pa.RecordBatch) -> bool:
    """Entries, rules and the choice of a region are worked out row by row."""
    by_row = schema.indexes or schema.rules or schema.layout.router.regions > 1
    judge = is_small if by_row else is_short_columnar
    return judge(batch.num_rows, batch.nbytes)


def _counted(error: MetaError, before: int) -> MetaError:
    """The error, with the rows that the batches before it applied added to its own."""
    some = error.facts.get("rows_applied", 0)
    applied = before + (some if isinstance(some, int) else 0)
    return type(error)(error.code, **{**error.facts, "rows_applied": applied})


def _added(outcomes: Mapping[str, RegionOutcome], outcome: RegionOutcome) -> RegionOutcome:
    """Returns the outcome of a region for all batches of a stream so far."""
    before = outcomes.get(outcome.region_id)
    if before is None:
        return outcome
    repeated = before.repeated and outcome.repeated
    return replace(outcome, rows=before.rows + outcome.rows, repeated=repeated)
