"""The conditions of a query by column: values that are equal, and one range. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dataplane.frontend.sql.faults import fault_of
from metasrv_base.rows.layout import Layout
from metasrv_base.schema.values import Value, from_json
from metasrv_base.sql.rows.row_commands import Condition, RowStatement


@dataclass(frozen=True, slots=True)
class End:
    """One end of a range."""

    value: Value
    is_inclusive: bool
    text: str
    """The comparison, as `>=`."""


@dataclass(slots=True)
class ValueRange:
    """The range of the values of a column."""

    low: End | None = None
    high: End | None = None


@dataclass(frozen=True, slots=True)
class ColumnConditions:
    equal: Mapping[str, Value] = field(default_factory=dict)
    """The value by column."""
    ranges: Mapping[str, ValueRange] = field(default_factory=dict)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset((*self.equal, *self.ranges))


def conditions_of(
    statement: RowStatement, layout: Layout, parsed: Sequence[Condition]
) -> ColumnConditions:
    """Raises Refused `invalid-sql` at a constant that does not fit its column, and at a condition
    that says the same of a column as one before it."""
    equal: dict[str, Value] = {}
    ranges: dict[str, ValueRange] = {}
    for condition in parsed:
        name, comparison = condition.column, condition.comparison
        value = from_json(layout.named[name].type, condition.value, f"{condition.pointer}/value")
        if name in equal or (comparison == "=" and name in ranges):
            raise fault_of(statement, condition.pointer, f"one condition for {name}")
        if comparison == "=":
            equal[name] = value
            continue
        range = ranges.setdefault(name, ValueRange())
        end = End(value, len(comparison) == 2, comparison)
        if (range.high if comparison[0] == "<" else range.low) is not None:
            raise fault_of(statement, condition.pointer, f"one end of each sort for {name}")
        if comparison[0] == "<":
            range.high = end
        else:
            range.low = end
    return ColumnConditions(equal, ranges)
