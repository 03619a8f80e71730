"""Finds the rows that a statement inserts, updates and deletes, and their new values. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.frontend.catalog.schema import StoredColumn
from dataplane.frontend.planning.row_input import Op, RowInput
from metasrv_base.elements.graph import Act, Behaviour
from metasrv_base.rows.convert import array_of
from metasrv_base.rows.layout import LayoutColumn
from metasrv_base.schema.values import Value
from metasrv_base.wire.node.batches import ABSENT


@dataclass(frozen=True, slots=True)
class Cases:
    """A flag for each row given."""

    op: Op
    present: pa.BooleanArray | None
    """Whether there is a row for each key; None if it was not looked up."""
    inserted: pa.BooleanArray
    updated: pa.BooleanArray
    deleted: pa.BooleanArray

    def is_there(self, expected: bool) -> bool:
        """Whether a row is known to be there, or not to be."""
        if self.present is None:
            return False
        mask = self.present if expected else pc.invert(self.present)
        return bool(pc.any(mask).as_py())

    def expected(self, rows: pa.RecordBatch | None) -> pa.Int64Array | None:
        """Row versions that must still be current; None: whatever is there."""
        if self.op is Op.INSERT:
            return pa.repeat(pa.scalar(ABSENT, pa.int64()), len(self.inserted))
        if rows is None:
            return None
        return pc.fill_null(rows.column("_version"), ABSENT)

    def sets(self, statement_rows: RowInput, columns: Iterable[LayoutColumn]) -> pa.BooleanArray:
        """Returns a mask of the updated rows that set one of *columns*: an upsert sets every
        column."""
        mask = self._all(self.op is not Op.UPDATE)
        for column in columns:
            if self.op is Op.UPDATE and column.id in statement_rows.columns:
                mask = pc.or_(mask, statement_rows.columns[column.id].named)
        return mask

    def where(self, does: Behaviour, touched: pa.BooleanArray, act: Act) -> pa.BooleanArray:
        """The rows for which the element does *act*."""
        elsewhere = pc.and_not(self.updated, touched)
        selected = self._all(False)
        for mask, acts in (
            (self.inserted, does.insert),
            (pc.and_(self.updated, touched), does.update),
            (elsewhere, does.update_elsewhere),
            (self.deleted, does.delete),
        ):
            selected = pc.or_(selected, mask) if act in acts else selected
        return selected

    def _all(self, value: bool) -> pa.BooleanArray:
        return pa.repeat(pa.scalar(value), len(self.inserted))


def cases_of(op: Op, count: int, present: pa.BooleanArray | None) -> Cases:
    every, none = pa.repeat(pa.scalar(True), count), pa.repeat(pa.scalar(False), count)
    match op:
        case Op.INSERT:
            return Cases(op, present, every, none, none)
        case Op.UPDATE:
            return Cases(op, present, none, every, none)
        case Op.UPSERT if present is None:
            return Cases(op, present, every, none, none)
        case Op.UPSERT:
            return Cases(op, present, pc.invert(present), present, none)
        case Op.DELETE:
            return Cases(op, present, none, none, every if present is None else present)


def new_values(
    stored: StoredColumn,
    statement_rows: RowInput,
    cases: Cases,
    rows: pa.RecordBatch | None,
    mirrored: pa.Array | None = None,
) -> pa.Array:
    """Returns the values of a column in the new rows. *mirrored*: the values of the column that it
    mirrors, converted to its type."""
    does, column = stored.does, stored.column
    named = column if stored.mirror is None else stored.mirror.column
    values = _Values(stored, statement_rows, rows, mirrored)
    if cases.inserted.true_count == statement_rows.count:
        return values.after(does.insert)
    is_nameable = does.visible or stored.mirror is not None
    sets = (
        cases.sets(statement_rows, [named])
        if is_nameable
        else pa.repeat(False, statement_rows.count)
    )
    updated = pc.if_else(sets, values.after(does.update), values.after(does.update_elsewhere))
    return pc.if_else(cases.inserted, values.after(does.insert), updated)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of one column, by the acts that make them."""

    stored: StoredColumn
    statement_rows: RowInput
    rows: pa.RecordBatch | None
    mirrored: pa.Array | None

    def after(self, acts: Iterable[Act]) -> pa.Array:
        """Returns the values after *acts*. Without an act that stores one, rows have the column's
        origin default. An old row from a region has that default filled in already, so that a null
        that was kept stays null."""
        values: pa.Array | None = None
        is_kept = False
        for act in acts:
            if act is Act.KEEP:
                values, is_kept = self._kept(self._origin() if values is None else values), True
            elif act is Act.PUT:
                values = self._put()
            elif act is Act.MIRROR:
                values = self.mirrored
            elif act is Act.FILL and not is_kept:
                values = self._repeated(self.stored.filler)
        return self._origin() if values is None else values

    def _origin(self) -> pa.Array:
        return self._repeated(self.stored.origin)

    def _put(self) -> pa.Array:
        column_input = self.statement_rows.columns.get(self.stored.column.id)
        if column_input is not None and column_input.named.true_count == self.statement_rows.count:
            return column_input.values
        default = self._repeated(self.stored.column.default)
        return (
            default
            if column_input is None
            else pc.if_else(column_input.named, column_input.values, default)
        )

    def _kept(self, nothing: pa.Array) -> pa.Array:
        field = self.stored.column.field
        if self.rows is None or field not in self.rows.schema.names:
            return nothing
        return self.rows.column(field)

    def _repeated(self, value: Value | None) -> pa.Array:
        (scalar,) = array_of(self.stored.column, [value])
        return pa.repeat(scalar, self.statement_rows.count)
