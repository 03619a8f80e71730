"""A stream of batches that is written as it comes, each batch a statement of its own."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.row_input import Op, RowInput, from_arrow
from dataplane.frontend.statements.writes import NOT_SAID, StatementTimes, WriteOutcome, Writes
from metasrv_base.concurrency.run_in_thread import is_short_columnar, is_small
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable, Unknown
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.outcome import RegionOutcome
from metasrv_base.rows.places import moved
from metasrv_base.rows.statement_ids import id_of_batch

Batches = Callable[[Callable[[], float]], AsyncIterator[pa.RecordBatch]]
"""The batches of a body, given the seconds that the next bytes may take."""


@dataclass(frozen=True, slots=True)
class WriteStream:
    writes: Writes
    op: Op
    statement_id: str
    times: StatementTimes = NOT_SAID

    async def run(self, name: Name, batches: Batches) -> WriteOutcome:
        """Applies each batch by itself, in each region wholly or not at all. Ends at the first that
        cannot be applied.

        Raises what `settle` raises for it (metasrv_base/rows/outcome.py), with the `rows_applied`
        of all batches. Once rows were applied it raises Unknown instead of Unavailable and
        NotFound, and `regions` has the regions of the batches before, with the rows of each."""
        rows, offset, regions = 0, 0, dict[str, RegionOutcome]()
        writes, statements = self.writes, self.writes.statements
        with statements.running(answer_by_ms=self.times.answer_by_ms) as transaction:
            schema = await statements.bound(transaction, name)
            try:
                number = 0
                async for batch in batches(partial(statements.left_s, transaction)):
                    statements.check_age(transaction)
                    read = partial(_from_arrow, batch, self.op)
                    id = id_of_batch(self.statement_id, number)
                    request = writes.request(transaction, self.op, read, id)
                    is_short = _is_short(schema, batch)
                    request = replace(request, sent_ms=self.times.sent_ms, is_short=is_short)
                    try:
                        result, _ = await writes.run(schema, request)
                    except MetaError as error:
                        raise moved(error, offset, batch.num_rows) from error
                    schema = statements.catalog.latest(schema)
                    rows, number, offset = rows + result.rows, number + 1, offset + batch.num_rows
                    del batch, read, request  # the next one may be long on its way
                    regions |= {part.region_id: _added(regions, part) for part in result.regions}
            except TimeoutError as error:
                limit_s = statements.transactions.age_max_ms / 1000
                too_old = Conflict("transaction-too-old", limit_s=limit_s)
                raise _counted(too_old, rows, regions) from error
            except MetaError as error:
                raise _counted(error, rows, regions) from error
        return WriteOutcome(rows, schema.version, tuple(regions.values()))


def _from_arrow(batch: pa.RecordBatch, op: Op, layout: Layout) -> RowInput:
    return from_arrow(layout, batch, op)


def _is_short(schema: Schema, batch: pa.RecordBatch) -> bool:
    """Entries, rules and the choice of a region are worked out row by row."""
    by_row = schema.indexes or schema.rules or schema.layout.router.regions > 1
    is_short = is_small if by_row else is_short_columnar
    return is_short(batch.num_rows, batch.nbytes)


def _counted(error: MetaError, before: int, regions: Mapping[str, RegionOutcome]) -> MetaError:
    """Returns the error of a stream whose earlier batches applied *before* rows in *regions*."""
    some = error.facts.get("rows_applied", 0)
    applied = before + (some if isinstance(some, int) else 0)
    facts = {**error.facts, "rows_applied": applied}
    if not before:
        return type(error)(error.code, **facts)
    facts["regions"] = _merged(regions, error.facts.get("regions"))
    if isinstance(error, Unavailable | NotFound):  # these say that nothing was done anywhere
        facts.pop("detail", None)
        return Unknown("outcome-unknown", **{**facts, "reason": error.code})
    return type(error)(error.code, **facts)


def _merged(before: Mapping[str, RegionOutcome], last: object) -> list[dict[str, Any]]:
    """Returns the `regions` of an error: each with its outcome in the *last* batch that it had a
    part of, and the rows of those before that one, all of which it applied."""
    shown = {id: outcome.shown() for id, outcome in before.items()}
    shown |= {region["region_id"]: region for region in last} if isinstance(last, list) else {}
    return [
        {**region, "rows_applied": before[id].rows} if id in before else region
        for id, region in shown.items()
    ]


def _added(outcomes: Mapping[str, RegionOutcome], outcome: RegionOutcome) -> RegionOutcome:
    """Returns the outcome of a region for all batches of a stream so far."""
    before = outcomes.get(outcome.region_id)
    if before is None:
        return outcome
    repeated = before.repeated and outcome.repeated
    return replace(outcome, rows=before.rows + outcome.rows, repeated=repeated)
