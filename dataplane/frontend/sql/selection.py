"""Chooses the access path of a query: a row by its key, a range of the key, or of an index. Pure.

A path answers a query if its conditions are `=` on the first columns of the key or index, and at
most one range on the next: then the rows are one range of encoded keys, and nothing is read that is
not shown. There is no cost model. The primary key comes first, then the indexes in the order in
which they were made.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dataplane.frontend.catalog.schema import Schema, StoredIndex
from dataplane.frontend.sql.conditions import ColumnConditions, End, conditions_of
from dataplane.frontend.sql.faults import fault_of
from dataplane.frontend.sql.key_merge import KeyMerge
from dataplane.frontend.statements.query import after_prefix
from dataplane.frontend.statements.scans import IndexScan, RowScan, Scan, Within
from metasrv_base.errors import MetaError, Refused
from metasrv_base.rows.layout import LayoutColumn
from metasrv_base.schema.entrycodec import PRESENT, encode_values
from metasrv_base.schema.keycodec import encode
from metasrv_base.schema.values import Value, to_json
from metasrv_base.sql.identifiers import identifier
from metasrv_base.sql.literals import literal
from metasrv_base.sql.rows.reserved import column_text
from metasrv_base.sql.rows.row_commands import RowStatement, SelectRows
from metasrv_base.sql.rows.row_grammar import BEYOND


@dataclass(frozen=True, slots=True)
class Path:
    """The primary key (`index` is None) or an index, and the conditions that it answers."""

    schema: Schema
    conditions: ColumnConditions
    index: StoredIndex | None = None

    @property
    def columns(self) -> Sequence[LayoutColumn]:
        return self.schema.layout.key if self.index is None else self.index.columns

    @property
    def name(self) -> str:
        if self.index is not None:
            return f"index {identifier(self.index.name)}"
        return "primary key"

    @property
    def described(self) -> str:
        return f"{self.name} ({', '.join(column_text(column.name) for column in self.columns)})"

    @property
    def equal(self) -> list[Value]:
        """Values of the first columns."""
        equal, values = self.conditions.equal, []
        for column in self.columns:
            if column.name not in equal:
                break
            values.append(equal[column.name])
        return values

    @property
    def answers(self) -> bool:
        """Whether its range of keys holds exactly the rows that satisfy all conditions."""
        count = len(self.equal)
        used = {column.name for column in self.columns[:count]}
        used |= {name for name in self.conditions.ranges if self._is_next(name)}
        return used == self.conditions.columns

    def is_ordered_by(self, names: Sequence[str]) -> bool:
        """Whether its rows come in that order. Columns with one value are in every order."""
        fixed = self.conditions.equal
        own = [column.name for column in self.columns]
        own += [column.name for column in self.schema.layout.key if column.name not in own]
        order = [name for name in own if name not in fixed]
        asked_order = list(dict.fromkeys(name for name in names if name not in fixed))
        return asked_order == order[: len(asked_order)]

    @property
    def whole_key(self) -> list[Value] | None:
        """The key of the only row, of the primary key."""
        values = self.equal
        is_whole = self.index is None and len(values) == len(self.columns)
        return values if is_whole else None

    def ends(self) -> tuple[bytes, bytes | None] | None:
        """The range of keys, the end exclusive, None: to the last. None: it is empty."""
        prefix, ranges = self._encoded(self.equal), self.conditions.ranges
        name = next((name for name in ranges if self._is_next(name)), None)
        if name is None:
            return prefix, after_prefix(prefix)
        # Nulls come first in an index, and are in no range.
        first = prefix if self.index is None else prefix + PRESENT
        end = after_prefix(prefix)
        if (low := ranges[name].low) is not None:
            above = self._end(low, after=not low.is_inclusive)
            if above is None:
                return None
            first = above
        if (high := ranges[name].high) is not None:
            end = self._end(high, after=high.is_inclusive)
        return None if end is not None and first >= end else (first, end)

    def _end(self, end: End, *, after: bool) -> bytes | None:
        encoded = self._encoded([*self.equal, end.value])
        return after_prefix(encoded) if after else encoded

    def _encoded(self, values: Sequence[Value]) -> bytes:
        types = [column.type for column in self.columns[: len(values)]]
        return encode(types, values) if self.index is None else encode_values(types, values)

    def _is_next(self, name: str) -> bool:
        count = len(self.equal)
        return count < len(self.columns) and self.columns[count].name == name


@dataclass(frozen=True, slots=True)
class Selection:
    """A query as it is carried out."""

    path: Path
    scans: tuple[Scan, ...]
    """Read one after the other; none of a query by whole key, and of an empty range."""
    regions: tuple[int, ...]
    """The numbers of the regions that are asked."""

    @property
    def key(self) -> list[Value] | None:
        return self.path.whole_key


def selection(schema: Schema, statement: RowStatement, select: SelectRows) -> Selection:
    """Raises Refused `invalid-sql` at the place of what no path answers."""
    try:
        conditions = conditions_of(statement, schema.layout, select.conditions)
        path = _path(schema, statement, select, conditions)
        ends = path.ends()
    except Refused as error:
        raise _placed(error, statement) from error
    numbers = tuple(_numbers(path, ends))
    if path.whole_key is not None or ends is None:
        return Selection(path, (), numbers if ends else ())
    if path.index is not None:
        return Selection(path, (IndexScan(schema, path.index, ends[1], ends[0]),), numbers)
    return Selection(path, _row_scans(path, select, ends, numbers), numbers)


def _placed(error: Refused, statement: RowStatement) -> MetaError:
    """A constant that does not fit, as the fault of the text that it is."""
    if error.code == "invalid-sql":
        return error
    pointer = error.facts.get("pointer")
    span_pointer = (
        pointer if isinstance(pointer, str) and pointer in statement.places else "/where/0/value"
    )
    return fault_of(statement, span_pointer, str(error.facts.get("expected", "another constant")))


def _path(
    schema: Schema, statement: RowStatement, select: SelectRows, conditions: ColumnConditions
) -> Path:
    visible = (index for index in schema.indexes if index.does.visible)
    paths = [Path(schema, conditions), *(Path(schema, conditions, index) for index in visible)]
    answering = [path for path in paths if path.answers]
    if not answering:
        choices = "; ".join(path.described for path in paths)
        first = next(
            (each for each in select.conditions if not _is_first(paths, each.column)),
            select.conditions[0],
        )
        expected = (
            f"conditions of one key or index, = on its first columns and a range on the next: "
            f"{choices}; {BEYOND}"
        )
        raise fault_of(statement, first.pointer, expected)
    for path in answering:
        if path.is_ordered_by(select.order_by):
            return path
    orders = "; ".join(path.described for path in answering)
    raise fault_of(statement, "/order_by", f"the order in which rows are read: {orders}; {BEYOND}")


def _is_first(paths: Sequence[Path], name: str) -> bool:
    return any(path.columns[0].name == name for path in paths)


def _numbers(path: Path, ends: tuple[bytes, bytes | None] | None) -> Iterator[int]:
    """Regions that may have rows of the query."""
    layout, equal = path.schema.layout, path.conditions.equal
    if ends is None:
        return
    if all(column.name in equal for column in layout.routed_by):
        yield layout.router.number([equal[column.name] for column in layout.routed_by])
        return
    if path.index is not None or not _is_by_key_range(path):
        yield from range(layout.router.regions)
        return
    bounds, (first, end) = layout.router.bounds or (), ends
    for number in range(bisect_right(bounds, first), layout.router.regions):
        if number and end is not None and bounds[number - 1] >= end:
            return
        yield number


def _is_by_key_range(path: Path) -> bool:
    """Whether the order of the regions is that of the keys."""
    layout = path.schema.layout
    return (
        layout.router.bounds is not None and layout.routed_by == layout.key[: len(layout.routed_by)]
    )


def _row_scans(
    path: Path, select: SelectRows, ends: tuple[bytes, bytes | None], numbers: Sequence[int]
) -> tuple[Scan, ...]:
    schema, (first, end) = path.schema, ends
    columns = schema.layout.chosen(_distinct(select.columns))
    if select.order_by and len(numbers) > 1 and not _is_by_key_range(path):
        return (KeyMerge(schema, columns, first, end, numbers),)
    return tuple(RowScan(schema, columns, Within(first, end, number)) for number in numbers)


def _distinct(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(dict.fromkeys(names))


EXPLAINED = ("access", "range", "regions", "order")


def explained(selection: Selection, select: SelectRows) -> tuple[str, ...]:
    """The row that EXPLAIN shows, with columns as in EXPLAINED."""
    path = selection.path
    total = path.schema.layout.router.regions
    order = ", ".join(select.order_by) or "as read"
    regions = f"{len(selection.regions)} of {total}"
    return path.described, " AND ".join(_range_text(path)) or "all rows", regions, order


def _range_text(path: Path) -> Iterator[str]:
    named, conditions = path.schema.layout.named, path.conditions

    def text(name: str, value: Value) -> str:
        type = named[name].type
        return literal(to_json(type, value), type)

    for name, value in conditions.equal.items():
        yield f"{column_text(name)} = {text(name, value)}"
    for name, range in conditions.ranges.items():
        for end in (range.low, range.high):
            if end is not None:
                yield f"{column_text(name)} {end.text} {text(name, end.value)}"
