"""The grammar of statements about rows. Never guesses: a statement is understood to its last word,
or refused with the place of the first that is not.

It is small on purpose (docs/decisions/0285): rows by primary key, or by a range of the key or of an
index. For anything more there are Spark and DuckDB, and the refusal says so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from metasrv_base.errors import Refused
from metasrv_base.rows.layout import Layout
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import ColumnType
from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.constants import constant
from metasrv_base.sql.faults import fault_at
from metasrv_base.sql.names import table_name
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.rows.reserved import MORE_WORDS, RESERVED
from metasrv_base.sql.rows.row_commands import (
    Comparison,
    Condition,
    DeleteRow,
    ExplainRows,
    InsertRows,
    JsonRow,
    PlainCommand,
    RowCommand,
    RowStatement,
    SelectRows,
    UpdateRow,
)
from metasrv_base.sql.rows.statement_kinds import ROW_WORDS
from metasrv_base.sql.split import split
from metasrv_base.sql.tokens import SqlSort, SqlToken
from metasrv_base.wire.frontend.rows import ROWS_MAX

LayoutOf: TypeAlias = Callable[[QualifiedTable], Layout | None]
"""The columns of a table; None: they are not looked at."""
BEYOND = "this is no query engine, for more there are Spark and DuckDB"
_MORE_MARKS = frozenset("(+-*/%!.")


def row_statements(source: str, layout_of: LayoutOf) -> Iterator[RowStatement]:
    """Yields the statements of a text. Raises Refused `invalid-sql`."""
    for text in split(source):
        yield row_statement(Reader(text), layout_of)


def row_statement(reader: Reader, layout_of: LayoutOf) -> RowStatement:
    """Raises Refused `invalid-sql`, with the place, and what *layout_of* raises: the place of the
    table is known by then, and the reader can be rewound."""
    command = _Grammar(reader, layout_of).command()
    if not reader.is_at_end:
        raise _unexpected(reader, "the end of the statement")
    return RowStatement(reader.statement, command, reader.places)


def _unexpected(
    reader: Reader, expected: str, choices: Sequence[str] = (), token: SqlToken | None = None
) -> Refused:
    """The refusal of the next token; of one that begins more than is read here, with the hint."""
    token = token or reader.token
    is_more = token.word in MORE_WORDS or (token.sort is SqlSort.MARK and token.text in _MORE_MARKS)
    message = f"{expected}; {BEYOND}" if is_more else expected
    return reader.unexpected(message, choices=choices, token=token)


@dataclass(frozen=True, slots=True)
class _Grammar:
    reader: Reader
    layout_of: LayoutOf

    def command(self) -> RowCommand:
        if self.reader.takes("EXPLAIN"):
            return ExplainRows(self._plain(ROW_WORDS))
        return self._plain((*ROW_WORDS, "EXPLAIN"))

    def _plain(self, words: Sequence[str]) -> PlainCommand:
        """Reads a command that is not EXPLAIN. *words* are those that an error names as allowed
        here."""
        reader = self.reader
        word = next((word for word in ROW_WORDS if reader.takes(word)), None)
        match word:
            case "SELECT":
                return self._select()
            case "INSERT":
                return self._insert()
            case "UPDATE":
                return self._update()
            case "DELETE":
                return self._delete()
        raise _unexpected(reader, f"{', '.join(words)}; {BEYOND}", ROW_WORDS)

    # -- statements

    def _insert(self) -> InsertRows:
        reader = self.reader
        reader.must_take("INTO")
        table, layout = self._table()
        names: tuple[str, ...] | None = None
        if reader.is_next("("):
            names = reader.listed(lambda position: self._column(layout, f"/columns/{position}"))
            self._must_differ(names)
        elif layout is not None:
            names = tuple(column.name for column in layout.columns)
        if not reader.takes("VALUES"):
            raise _unexpected(reader, "VALUES" if names else "( or VALUES", ("VALUES",))
        rows = reader.several(lambda number: self._values(layout, names, number))
        return InsertRows(table, rows)

    def _values(self, layout: Layout | None, names: tuple[str, ...] | None, number: int) -> JsonRow:
        """Reads `( constant or DEFAULT, .. )`, one for each column."""
        reader, row = self.reader, {}

        def value(position: int) -> None:
            if names is not None and position >= len(names):
                raise reader.unexpected(f") after {len(names)} values, as there are columns")
            name = str(position) if names is None else names[position]
            if not reader.takes("DEFAULT"):
                row[name] = self._constant(_type(layout, name), f"/rows/{number}/{name}")

        first = reader.token
        with reader.placed(f"/rows/{number}"):
            count = len(reader.listed(value))
        if names is not None and count < len(names):
            expected = f"{len(names)} values: of {', '.join(names)}"
            raise reader.unexpected(expected, token=first)
        return row

    def _update(self) -> UpdateRow:
        reader = self.reader
        table, layout = self._table()
        reader.must_take("SET")
        row: dict[str, JsonScalar | None] = {}

        def assignment(_: int) -> None:
            token = reader.token
            name = self._column(layout, "/set")
            if name in row:
                raise reader.unexpected("each column once", token=token)
            if layout is not None and layout.named[name] in layout.key:
                expected = "no column of the primary key: a row keeps its key"
                raise reader.unexpected(expected, token=token)
            reader.must_take("=")
            row[name] = self._constant(_type(layout, name), f"/rows/0/{name}")

        reader.several(assignment)
        return UpdateRow(table, {**self._whole_key(layout), **row})

    def _delete(self) -> DeleteRow:
        self.reader.must_take("FROM")
        table, layout = self._table()
        return DeleteRow(table, self._whole_key(layout))

    def _select(self) -> SelectRows:
        reader = self.reader
        # The columns stand before the table that has them: their places are judged after it.
        tokens: list[SqlToken] = []

        def column(_: int) -> str:
            tokens.append(reader.token)
            name = self._name()
            if not (reader.is_next(",") or reader.is_next("FROM")):
                raise _unexpected(reader, ", or FROM", ("FROM",))
            return name

        names = None if reader.takes("*") else reader.several(column)
        if not reader.takes("FROM"):
            raise _unexpected(reader, "FROM", ("FROM",))
        table, layout = self._table()
        for token, name in zip(tokens, names or (), strict=True):
            self._must_be_there(layout, name, token)
        conditions = self._where(layout)
        return SelectRows(table, names, conditions, self._order_by(layout), self._limit())

    def _order_by(self, layout: Layout | None) -> tuple[str, ...]:
        reader = self.reader
        if not reader.takes("ORDER"):
            return ()
        reader.must_take("BY")

        def column(position: int) -> str:
            name = self._column(layout, f"/order_by/{position}")
            if reader.is_next("DESC"):
                raise reader.unexpected("ASC: rows are read in ascending order")
            reader.takes("ASC")
            return name

        with reader.placed("/order_by"):
            return reader.several(column)

    def _limit(self) -> int | None:
        reader = self.reader
        if not reader.takes("LIMIT"):
            return None
        token, expected = reader.token, f"a number of rows from 0 to {ROWS_MAX}"
        is_long = token.sort is SqlSort.NUMBER and len(token.text) > 6
        limit = ROWS_MAX + 1 if is_long else reader.whole_number(expected, "/limit")
        if limit > ROWS_MAX:
            raise reader.unexpected(expected, token=token)
        return limit

    # -- conditions

    def _whole_key(self, layout: Layout | None) -> JsonRow:
        """Reads WHERE with one `=` for each column of the primary key."""
        reader = self.reader
        if not reader.is_next("WHERE"):
            raise _unexpected(reader, "WHERE and the primary key of one row", ("WHERE",))
        key: dict[str, JsonScalar | None] = {}
        for condition in self._where(layout):
            is_key = layout is None or layout.named[condition.column] in layout.key
            if condition.comparison != "=" or not is_key or condition.column in key:
                names = "" if layout is None else f": {_names(layout)}"
                expected = f"= once for each column of the primary key{names}; {BEYOND}"
                raise self._fault(condition.pointer, expected)
            key[condition.column] = condition.value
            pointer = f"{condition.pointer}/value"
            reader.places[f"/rows/0/{condition.column}"] = reader.places[pointer]
        for column in () if layout is None else layout.key:
            if column.name not in key:
                raise _unexpected(reader, f"AND {column.name} = .., the rest of the primary key")
        return key

    def _where(self, layout: Layout | None) -> tuple[Condition, ...]:
        reader = self.reader
        conditions: list[Condition] = []
        if reader.takes("WHERE"):
            conditions += self._condition(layout, 0)
            while reader.takes("AND"):
                conditions += self._condition(layout, len(conditions))
        return tuple(conditions)

    def _condition(self, layout: Layout | None, number: int) -> Iterator[Condition]:
        reader, pointer = self.reader, f"/where/{number}"
        name = self._column(layout, pointer)
        type = _type(layout, name)
        if reader.takes("BETWEEN"):
            yield self._compared(name, ">=", type, pointer)
            reader.must_take("AND")
            reader.places[upper := f"/where/{number + 1}"] = reader.places[pointer]
            yield self._compared(name, "<=", type, upper)
            return
        yield self._compared(name, self._comparison(), type, pointer)

    def _compared(
        self, name: str, comparison: Comparison, type: ColumnType | None, pointer: str
    ) -> Condition:
        token = self.reader.token
        value = self._constant(type, f"{pointer}/value")
        if value is None:
            expected = f"a constant: nothing is {comparison} NULL"
            raise self.reader.unexpected(expected, token=token)
        return Condition(name, comparison, value, pointer)

    def _comparison(self) -> Comparison:
        reader, first = self.reader, self.reader.token
        if reader.takes("="):
            return "="
        is_wide = False
        less = reader.takes("<")
        if less or reader.takes(">"):
            second = reader.token
            is_glued = second.span.start == first.span.end
            if is_glued and less and reader.is_next(">"):
                raise _unexpected(reader, f"=; {BEYOND}")
            is_wide = is_glued and reader.takes("=")
            if less:
                return "<=" if is_wide else "<"
            return ">=" if is_wide else ">"
        raise _unexpected(reader, "=, <, <=, >, >= or BETWEEN", ("BETWEEN",))

    # -- names and constants

    def _table(self) -> tuple[QualifiedTable, Layout | None]:
        with self.reader.placed("/table"):
            table = table_name(self.reader)
        return table, self.layout_of(table)

    def _name(self) -> str:
        token = self.reader.token
        if token.sort not in (SqlSort.WORD, SqlSort.NAME) or token.word in RESERVED:
            raise _unexpected(self.reader, "a column")
        return self.reader.take().text

    def _column(self, layout: Layout | None, pointer: str) -> str:
        token = self.reader.token
        name = self._name()
        self.reader.places[pointer] = token.span
        self._must_be_there(layout, name, token)
        return name

    def _must_be_there(self, layout: Layout | None, name: str, token: SqlToken) -> None:
        if layout is None or name in layout.named:
            return
        spelled = layout.spelled(name)
        near = [spelled] if spelled != name else get_close_matches(name, layout.named, n=1)
        source, start = self.reader.statement.source, token.span.start
        expected = f"a column of {layout.name}"
        hint = {"did_you_mean": near[0]} if near else {}
        raise fault_at(source, start, actual=name, expected=expected, **hint)

    def _must_differ(self, names: Sequence[str]) -> None:
        for position, name in enumerate(names):
            if name in names[:position]:
                raise self._fault(f"/columns/{position}", "each column once")

    def _constant(self, type: ColumnType | None, pointer: str) -> JsonScalar | None:
        token = self.reader.token
        value = constant(self.reader, type, pointer)
        if self.reader.token.sort is SqlSort.MARK and self.reader.token.text in _MORE_MARKS:
            raise _unexpected(self.reader, "a constant alone")
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            raise self.reader.unexpected("a number that a float can hold", token=token)
        return value

    def _fault(self, pointer: str, expected: str) -> Refused:
        span, source = self.reader.places[pointer], self.reader.statement.source
        return fault_at(source, span.start, actual=source[span.start : span.end], expected=expected)


def _type(layout: Layout | None, name: str) -> ColumnType | None:
    return None if layout is None or name not in layout.named else layout.named[name].type


def _names(layout: Layout) -> str:
    return ", ".join(column.name for column in layout.key)
