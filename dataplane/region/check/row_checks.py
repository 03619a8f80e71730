"""Finds the rows of a table that break a constraint, with their values. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import KEY, ColumnDef, chosen
from dataplane.region.indexes.index_entries import whole
from metasrv_base.errors import Refused
from metasrv_base.expressions.check import Check
from metasrv_base.rows.convert import json_column
from metasrv_base.schema.conversion import Conversion, conversion_of
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.wire.node.jobs import RowCheck
from metasrv_base.wire.node.offenders import LISTED_CHARS_MAX, ViolatingRow, first_within, shown

Values = Mapping[int, pa.Array]
"""Columns by id."""


@dataclass(frozen=True, slots=True)
class RowRule:
    """One constraint, ready to be looked at."""

    constraint: int
    columns: tuple[ColumnDef, ...]
    """The columns that the constraint names, in order of id."""
    rule: Check | Conversion | None
    """The rule for the columns; None if none of them may be null."""

    @classmethod
    def of(cls, row_check: RowCheck, columns: Sequence[ColumnDef]) -> "RowRule":
        """Builds the check of a constraint. *columns* are the table's. Raises Refused for a
        constraint that makes no sense of them."""
        types = {column.id: parse_type(column.type) for column in columns}
        check = _check(row_check, types)
        ids = row_check.columns if check is None else check.columns
        unknown = sorted(set(ids) - set(types))
        if unknown:
            reason = f"no columns {unknown}"
            raise Refused("invalid-request", constraint=row_check.constraint, reason=reason)
        return cls(
            row_check.constraint, chosen(columns, ids), check or _conversion(row_check, types)
        )

    def broken(self, values: Values) -> pa.BooleanArray:
        if isinstance(self.rule, Check):
            return self.rule.broken(values)
        if isinstance(self.rule, Conversion):
            (column,) = self.columns
            return self.rule.of_array(values[column.id]).misfits
        return reduce(pc.or_, [pc.is_null(values[column.id]) for column in self.columns])


def _check(row_check: RowCheck, types: Mapping[int, ColumnType]) -> Check | None:
    if row_check.kind != "check":
        return None
    if row_check.expression is None:
        raise Refused("invalid-request", constraint=row_check.constraint, found="no expression")
    return Check.of(row_check.expression, types)


def _conversion(row_check: RowCheck, types: Mapping[int, ColumnType]) -> Conversion | None:
    if row_check.kind != "convertible":
        return None
    if row_check.to_type is None or len(row_check.columns) != 1:
        raise Refused(
            "invalid-request", constraint=row_check.constraint, found="not one type to one"
        )
    return conversion_of(types[row_check.columns[0]], parse_type(row_check.to_type))


def violations(
    rows: pa.Table, row_rules: Sequence[RowRule], limit: int
) -> tuple[tuple[ViolatingRow, ...], int]:
    """The first *limit* in the order of *rows*, and how many there are: a row that breaks two
    constraints counts twice. *rows*: `_key` and the columns that the constraints name."""
    violating: list[tuple[int, ViolatingRow]] = []
    total = 0
    for rule in row_rules:
        columns = {column.id: whole(rows.column(column.name)) for column in rule.columns}
        places = pc.indices_nonzero(rule.broken(columns))
        total += len(places)
        first = places[:limit]
        violating += zip(first.to_pylist(), _named(rule, rows.take(first)), strict=True)
    violating.sort(key=lambda pair: pair[0])
    named = (violation for _, violation in violating[:limit])
    return tuple(first_within(named, LISTED_CHARS_MAX)), total


def _named(rule: RowRule, rows: pa.Table) -> Iterator[ViolatingRow]:
    values = {
        str(column.id): json_column(parse_type(column.type), rows.column(column.name))
        for column in rule.columns
    }
    for position, key in enumerate(rows.column(KEY).to_pylist()):
        yield ViolatingRow(
            constraint=rule.constraint,
            row_key=key.hex(),
            values={name: shown(column[position]) for name, column in values.items()},
        )
