"""A statement on one region as one conditional batch: what each element's graph says, executed.

Pure: (schema, op, the rows as given, rows and entries as read) -> the batch, or what stands against
it. Names no state: the acts in `schema` decide (metasrv_base/elements/graph.py says what they
mean).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.cases import Cases, cases_of, new_values
from dataplane.frontend.planning.entries import IndexChange, ReadEntry
from dataplane.frontend.planning.mirrors import check_mirrors, in_its_type
from dataplane.frontend.planning.row_input import Op, RowInput
from dataplane.frontend.planning.rules import check_rules
from metasrv_base.elements.graph import Act
from metasrv_base.errors import Conflict
from metasrv_base.rows.convert import check_nulls
from metasrv_base.rows.limited import check_rows
from metasrv_base.wire.node.batches import OP_DELETE, OP_PUT

KEYS_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True)
class Known:
    """Rows and entries that were read of a region before it is written; empty where they are not
    needed."""

    rows: pa.RecordBatch | None = None
    """One for each row given: `_version`, and `c{id}` of the columns that were read; null where no
    row is."""
    entries: Mapping[int, Mapping[bytes, ReadEntry]] = field(default_factory=dict)
    """Entries that exist for the keys asked for, by index."""


def reads_rows(schema: Schema, op: Op) -> bool:
    """Whether what *op* does depends on the rows as they are."""
    match op:
        case Op.INSERT:
            return False
        case Op.UPDATE:
            return True
        case Op.DELETE:
            return any(Act.REMOVE in index.does.delete for index in schema.indexes)
        case Op.UPSERT:
            indexed = (index.does for index in schema.indexes)
            kept = (
                stored.does.update
                if stored.does.visible or stored.mirror
                else stored.does.update_elsewhere
                for stored in schema.columns
            )
            return any(
                does.insert or does.update or does.update_elsewhere for does in indexed
            ) or any(Act.KEEP in acts for acts in kept)


def columns_to_read(schema: Schema, op: Op) -> list[int] | None:
    """Ids of those that *op* must know of the rows as they are; None: all."""
    if op is not Op.DELETE:
        return None
    return sorted({column.id for index in schema.indexes for column in index.columns})


@dataclass(frozen=True, slots=True)
class RegionStatement:
    """One region's part of a statement, at one schema version."""

    schema: Schema
    op: Op
    statement_rows: RowInput

    def entries_to_read(self, rows: pa.RecordBatch | None, *, puts: bool) -> dict[int, list[bytes]]:
        """Returns the keys of each unique index whose entries `plan` must know: those that may be
        removed, and with *puts* those that must not be another row's."""
        cases = self._cases(rows)
        new = self._new_columns(cases, rows)
        keys_by_index: dict[int, list[bytes]] = {}
        for change in self._changes(cases, rows, new):
            pairs = [*change.removed, *(change.put if puts else ())]
            if change.index.unique and pairs:
                keys_by_index[change.index.id] = sorted({key for key, _ in pairs})
        return keys_by_index

    def plan(self, existing: Known) -> pa.RecordBatch:
        """The batch. A delete names rows that are not there too: the region must remember that the
        statement was done, or a late copy of it would delete what came since.

        Raises Conflict for a row that is there and must not be, or the other way round, and for
        what must be unique and is not; Refused for rows that break a constraint.
        """
        cases = self._cases(existing.rows)
        self._check_presence(cases)
        new = self._new_columns(cases, existing.rows)
        if new is not None:
            self._check_values(cases, new)
        parts = [self._rows(cases, existing.rows, new or {})]
        for change in self._changes(cases, existing.rows, new):
            entries = existing.entries.get(change.index.id, {})
            parts.extend(change.batches(entries, self._shown))
        return _joined([part for part in parts if part.num_rows])

    # -- inside

    def _cases(self, rows: pa.RecordBatch | None) -> Cases:
        present = None if rows is None else pc.is_valid(rows.column("_version"))
        return cases_of(self.op, self.statement_rows.count, present)

    def _check_presence(self, cases: Cases) -> None:
        if self.op is Op.INSERT and cases.is_there(True):
            keys = self._shown(self.statement_rows.keys.filter(cases.present).to_pylist())
            raise Conflict("already-exists", what="The row", name=keys[0], keys=keys)
        if self.op is Op.UPDATE and cases.is_there(False):
            missing = self.statement_rows.keys.filter(pc.invert(cases.present))
            raise Conflict("row-missing", keys=self._shown(missing.to_pylist()))

    def _shown(self, keys: Sequence[bytes]) -> list[dict[str, object]]:
        """Values of rows as an answer shows them, by column name."""
        return [self.schema.layout.key_json(key) for key in keys[:KEYS_SHOWN_MAX]]

    def _new_columns(
        self, cases: Cases, rows: pa.RecordBatch | None
    ) -> Mapping[int, pa.Array] | None:
        """Returns the values of each column in the new rows, by its id; None: a delete has no new
        rows."""
        if self.op is Op.DELETE:
            return None
        written = [stored for stored in self.schema.columns if stored.is_written]
        new: dict[int, pa.Array] = {}
        for stored in sorted(
            written, key=lambda stored: stored.mirror is not None
        ):  # what is mirrored first
            mirrored = None if stored.mirror is None else in_its_type(stored, new).values
            new[stored.column.id] = new_values(stored, self.statement_rows, cases, rows, mirrored)
        return new

    def _check_values(self, cases: Cases, new: Mapping[int, pa.Array]) -> None:
        """Checks nulls, constraints and mirrored values. Columns that users cannot name are not
        checked for nulls, which users could not mend."""
        for stored in self.schema.columns:
            if stored.does.visible:
                check_nulls(stored.column, new[stored.column.id], self.statement_rows.place)
        check_rules(self.schema.rules, cases, self.statement_rows, new)
        check_mirrors(self.schema, cases, self.statement_rows, new)

    def _rows(
        self, cases: Cases, rows: pa.RecordBatch | None, new: Mapping[int, pa.Array]
    ) -> pa.RecordBatch:
        deletes = self.op is Op.DELETE
        code = pa.scalar(OP_DELETE if deletes else OP_PUT, pa.uint8())
        columns = {
            "_key": self.statement_rows.keys,
            "_op": pa.repeat(code, self.statement_rows.count),
        }
        expected = cases.expected(rows)
        if expected is not None:
            columns["_expect"] = expected
        columns |= {f"c{id}": values for id, values in new.items()}
        batch = pa.RecordBatch.from_pydict(columns)
        check_rows(batch)
        return batch

    def _changes(
        self, cases: Cases, rows: pa.RecordBatch | None, new: Mapping[int, pa.Array] | None
    ) -> list[IndexChange]:
        old = (
            None
            if rows is None
            else {
                column.id: rows.column(column.field)
                for index in self.schema.indexes
                for column in index.columns
            }
        )
        keys = self.statement_rows.keys
        return [IndexChange.of(index, cases, keys, old, new) for index in self.schema.indexes]


def _joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Rows and entries as one batch; what a part does not have is null in it."""
    if len(parts) == 1:
        return parts[0]
    tables = [pa.Table.from_batches([part]) for part in parts]
    (batch,) = pa.concat_tables(tables, promote_options="default").combine_chunks().to_batches()
    return batch
