"""Statements about rows, drawn by Hypothesis, and as text."""

from typing import Any

from hypothesis import strategies as st

from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.schema.partition import HashRule, router
from metasrv_base.schema.types import ColumnType
from metasrv_base.schema.values import Value, to_json
from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.identifiers import dotted
from metasrv_base.sql.literals import literal
from metasrv_base.sql.rows.reserved import column_text
from metasrv_base.sql.rows.row_commands import (
    Condition,
    DeleteRow,
    ExplainRows,
    InsertRows,
    RowCommand,
    SelectRows,
    UpdateRow,
)
from tests.metasrv_base.schema.values import types, values

TABLE = QualifiedTable("t", "s", "c")
COMPARISONS = ("=", "<", "<=", ">", ">=")


def layout_of(*columns: tuple[str, ColumnType], key: int = 1) -> Layout:
    """A table whose first columns are the primary key."""
    made = tuple(
        LayoutColumn(id, name, type, id > key, None) for id, (name, type) in enumerate(columns, 1)
    )
    own = made[:key]
    routed_by = router(HashRule(columns=(1,), count=2), [own[0].type])
    return Layout(1024, "c.s.t", 1, made, own, routed_by, own[:1])


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    name = st.sampled_from(("a", "B", "c d", 'say "x"', "date", "order", "select", "é"))
    names = draw(st.lists(name, min_size=2, max_size=4, unique=True))
    return layout_of(*((each, draw(types())) for each in names), key=draw(st.integers(1, 2)))


def _json(column: LayoutColumn) -> st.SearchStrategy[Any]:
    def text(value: Value) -> Any:
        return to_json(column.type, value)

    return values(column.type).map(text)


@st.composite
def commands(draw: st.DrawFn, layout: Layout) -> RowCommand:
    key = {column.name: draw(_json(column)) for column in layout.key}
    others = [column for column in layout.columns if column not in layout.key]
    match draw(st.sampled_from(("insert", "update", "delete", "select", "explain"))):
        case "insert":
            optional = {column.name: st.none() | _json(column) for column in layout.columns}
            rows = st.fixed_dictionaries(optional)
            return InsertRows(TABLE, tuple(draw(st.lists(rows, min_size=1, max_size=3))))
        case "update" if others:
            changed = draw(st.lists(st.sampled_from(others), min_size=1, unique=True))
            new = {column.name: draw(st.none() | _json(column)) for column in changed}
            return UpdateRow(TABLE, {**key, **new})
        case "explain":
            explained = draw(commands(layout))
            return explained if isinstance(explained, ExplainRows) else ExplainRows(explained)
        case "select":
            return draw(_selects(layout))
    return DeleteRow(TABLE, key)


@st.composite
def _selects(draw: st.DrawFn, layout: Layout) -> SelectRows:
    name = st.sampled_from([column.name for column in layout.columns])
    conditions = tuple(
        Condition(
            column.name,
            draw(st.sampled_from(COMPARISONS)),
            draw(_json(column)),
            f"/where/{number}",
        )
        for number, column in enumerate(draw(st.lists(st.sampled_from(layout.columns), max_size=3)))
    )
    names = draw(st.none() | st.lists(name, min_size=1, max_size=3).map(tuple))
    order = draw(st.lists(name, max_size=2).map(tuple))
    return SelectRows(TABLE, names, conditions, order, draw(st.none() | st.integers(0, 10_000)))


def text_of(command: RowCommand, layout: Layout) -> str:
    """The statement that is read as *command*."""
    table = dotted(TABLE.catalog, TABLE.schema, TABLE.table)

    def said(name: str, value: Any) -> str:
        return literal(value, layout.named[name].type)

    def equal(row: Any, names: list[str], between: str) -> str:
        return between.join(f"{column_text(name)} = {said(name, row[name])}" for name in names)

    key = [column.name for column in layout.key]
    match command:
        case InsertRows(rows=rows):
            names = list(rows[0])
            lines = (f"({', '.join(said(name, row[name]) for name in names)})" for row in rows)
            columns = ", ".join(map(column_text, names))
            return f"INSERT INTO {table} ({columns}) VALUES {', '.join(lines)}"
        case UpdateRow(row=row):
            changed = equal(row, [name for name in row if name not in key], ", ")
            return f"UPDATE {table} SET {changed} WHERE {equal(row, key, ' AND ')}"
        case DeleteRow(key=row):
            return f"DELETE FROM {table} WHERE {equal(row, key, ' AND ')}"
        case ExplainRows(explained):
            return f"EXPLAIN {text_of(explained, layout)}"
        case SelectRows():
            names = list(command.columns or ())
            text = f"SELECT {', '.join(map(column_text, names)) or '*'} FROM {table}"
            conditions = [
                f"{column_text(each.column)} {each.comparison} {said(each.column, each.value)}"
                for each in command.conditions
            ]
            text += f" WHERE {' AND '.join(conditions)}" if conditions else ""
            order = ", ".join(map(column_text, command.order_by))
            text += f" ORDER BY {order}" if order else ""
            return text if command.limit is None else f"{text} LIMIT {command.limit}"
