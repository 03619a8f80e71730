"""Values of rows as words of a command, judged by the types of the table's columns."""

from collections.abc import Mapping, Sequence

import typer

from metasrv.cli.catalog.column_text import default_of
from metasrv.cli.near import must_be_among
from metasrv.cli.rows.rows_text import types_of
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import ColumnType
from metasrv_base.schema.values import Value, from_json, from_python, to_json
from metasrv_base.wire.api.tables import TableBody

PUBLIC = "public"


def row_of(body: TableBody, words: Sequence[str]) -> dict[str, Value | None]:
    """A row of `COLUMN=VALUE` words. Raises BadParameter, Refused."""
    types = types_of(body)
    row: dict[str, Value | None] = {}
    for word in words:
        name, is_given, text = word.partition("=")
        if not is_given:
            example = f"{body.primary_key[0]}={word}"
            raise typer.BadParameter(f"{word}: a value is COLUMN=VALUE, as {example} for the key")
        must_be_among(name, list(types), word, "column")
        row[name] = value_of(types[name], text, word)
    return row


def key_of(body: TableBody, words: Sequence[str]) -> tuple[Value, ...]:
    """A primary key: one word for each of its columns. Raises BadParameter, Refused."""
    types = types_of(body)
    if len(words) != len(body.primary_key):
        columns = " ".join(body.primary_key).upper()
        raise typer.BadParameter(f"the key of {body.name} is {columns}, not {' '.join(words)}")
    values = (
        value_of(types[name], word, name)
        for name, word in zip(body.primary_key, words, strict=True)
    )
    key = tuple(value for value in values if value is not None)
    if len(key) < len(words):
        raise typer.BadParameter("a value of a key is never null")
    return key


def value_of(type: ColumnType, text: str, location: str) -> Value | None:
    """The value of one word; `null` is null. *location*: named in errors. Raises Refused."""
    value = default_of(type, text)
    return None if value is None else from_json(type, value, location)


def lookup(body: TableBody, words: Sequence[str]) -> tuple[str | None, tuple[Value | None, ...]]:
    """The index whose first columns are those of the `COLUMN=VALUE` words, and their values in its
    order; None: the words are the primary key. Raises BadParameter, Refused."""
    row = row_of(body, words)
    ways: list[tuple[str | None, Sequence[str]]]
    ways = [(None, body.primary_key)] if len(row) == len(body.primary_key) else []
    ways += [(index.name, index.columns) for index in body.indexes if index.state == PUBLIC]
    for name, columns in ways:
        first = columns[: len(row)]
        if set(first) == row.keys():
            return name, tuple(row[column] for column in first)
    named = ", ".join(row)
    raise typer.BadParameter(
        f"--where {' '.join(words)}: neither the primary key nor an index of {body.name} begins "
        f"with {named}; `metasrv index create` makes one"
    )


def json_row(body: TableBody, row: Mapping[str, object]) -> dict[str, JsonScalar | None]:
    """A row of the SDK in JSON, columns in the order of the table."""
    return {
        name: None if row[name] is None else to_json(type, from_python(type, row[name]))
        for name, type in types_of(body).items()
        if name in row
    }
