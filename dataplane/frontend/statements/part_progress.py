"""The part of a writing statement that one region applies, and how far it is. No I/O."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.planning import Known, RegionStatement
from dataplane.frontend.planning.row_input import RowInput
from dataplane.frontend.statements.regions import SendLog
from metasrv_base.errors import MetaError, Refused
from metasrv_base.ids import TableId, region_id
from metasrv_base.rows.outcome import RegionOutcome, outcome_of
from metasrv_base.wire.limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from metasrv_base.wire.node.batches import OP_DELETE, BatchResult

NO_VERSION = -1
"""A version that no row has: row versions are not negative."""


@dataclass(slots=True)
class PartProgress:
    number: int
    """The region's number in its table."""
    statement: RegionStatement
    """The rows of this part, and the schema that they are bound to."""
    sent: SendLog = field(default_factory=SendLog)
    batch: pa.RecordBatch | None = None
    """The batch as planned, and not sent yet; None: it must be planned, perhaps again."""
    done: BatchResult | None = None
    """The answer of the region that applied it; None: not applied so far."""
    error: MetaError | None = None
    careful: bool = False
    """Whether keys that must be absent are looked up before they are written, since a region has
    refused them."""
    conflicts: int = 0

    @property
    def schema(self) -> Schema:
        return self.statement.schema

    @property
    def keys(self) -> pa.BinaryArray:
        return self.statement.statement_rows.keys

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes an error of the block: each part has an outcome of its own."""
        try:
            yield
        except MetaError as error:
            self.error = error

    def plan(self, existing: Known) -> pa.RecordBatch:
        """Returns the batch to send. Raises what `RegionStatement.plan` raises, and Refused if it
        is too large."""
        batch = self.statement.plan(existing)
        if batch.nbytes > BATCH_BYTES_MAX or batch.num_rows > BATCH_ROWS_MAX:
            raise Refused("body-too-large", limit_bytes=BATCH_BYTES_MAX, limit_rows=BATCH_ROWS_MAX)
        return batch

    def aligned(self, table: pa.Table) -> pa.RecordBatch:
        """Returns one row of *table* for each key of the part, null where there is none."""
        places = pc.index_in(self.keys, value_set=table.column("_key").combine_chunks())
        (batch,) = table.take(places).combine_chunks().to_batches()
        return batch

    def never_applied(self) -> pa.RecordBatch:
        """Returns a batch that no region applies: it expects a version that no row has."""
        columns = {
            "_key": self.keys.slice(0, 1),
            "_op": pa.array([OP_DELETE], pa.uint8()),
            "_expect": pa.array([NO_VERSION], pa.int64()),
        }
        return pa.RecordBatch.from_pydict(columns)

    def fits(self, schema: Schema, statement_rows: RowInput) -> bool:
        """Whether the rows of the part are among *statement_rows*, all in one region as before."""
        layout, before = schema.layout, self.schema.layout
        is_alike = layout.router == before.router and layout.key_types == before.key_types
        return is_alike and pc.index_in(self.keys, value_set=statement_rows.keys).null_count == 0

    def rebind(self, schema: Schema, statement_rows: RowInput) -> None:
        """Takes the rows of the part out of *statement_rows*, those of the whole statement under a
        newer schema."""
        places = pc.index_in(self.keys, value_set=statement_rows.keys)
        self.statement = RegionStatement(schema, self.statement.op, statement_rows.taken(places))

    @property
    def outcome(self) -> RegionOutcome:
        id = str(region_id(TableId(self.schema.layout.table_id), self.number))
        count = self.statement.statement_rows.count
        if self.error is not None:
            return outcome_of(id, count, self.error, self.sent.perhaps)
        if self.done is None:
            return RegionOutcome(id, "not-applied", count)
        return RegionOutcome(id, "applied", count, self.done.version, self.done.repeated)
