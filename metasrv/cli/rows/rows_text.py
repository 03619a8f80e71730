"""Rows as text for people and programs: the JSON form of each type
(metasrv_base/schema/values.py).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

import pyarrow as pa

from metasrv.cli.catalog.column_text import default_of
from metasrv_base.errors import NotFound, Refused
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import Value, from_json, to_json
from metasrv_base.wire.api.tables import TableBody


def json_rows(
    batch: pa.RecordBatch, types: Mapping[str, ColumnType]
) -> Iterator[dict[str, JsonScalar | None]]:
    """Rows as JSON objects, by column name."""
    names = batch.schema.names
    columns = [_column(batch.column(name), types[name]) for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def types_of(body: TableBody) -> dict[str, ColumnType]:
    return {column.name: parse_type(column.type) for column in body.columns}


def bound_of(body: TableBody, text: str | None, option: str) -> tuple[Value, ...] | None:
    """The first values of a key: a JSON list, or one value, of which a bare word is a string.

    Raises Refused.
    """
    all_values = first_values(body, body.primary_key, text, option)
    if all_values is None:
        return None
    values = tuple(value for value in all_values if value is not None)
    if len(values) < len(all_values):
        raise Refused("invalid-request", pointer=option, found="null", expected="values of a key")
    return values


def entry_of(
    body: TableBody, index: str, text: str | None, option: str
) -> tuple[Value | None, ...] | None:
    """The first values of an index, told in the same way; null is one. Raises Refused."""
    for index_body in body.indexes:
        if index_body.name == index:
            return first_values(body, index_body.columns, text, option)
    close = get_close_matches(index, [index_body.name for index_body in body.indexes], n=1)
    more = {"did_you_mean": close[0]} if close else {}
    raise NotFound(what="index", name=index, **more)


def first_values(
    body: TableBody, columns: Sequence[str], text: str | None, option: str
) -> tuple[Value | None, ...] | None:
    """Parses the values of the first of *columns*, in their order; None: no text. Raises
    Refused."""
    if text is None:
        return None
    types = types_of(body)
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = text
    values = parsed if isinstance(parsed, list) else [default_of(types[columns[0]], text)]
    if len(values) > len(columns):
        expected = f"at most {len(columns)} values"
        raise Refused("invalid-request", pointer=option, found=len(values), expected=expected)
    return tuple(
        None if value is None else from_json(types[name], value, f"{option}, {name}")
        for name, value in zip(columns, values, strict=False)
    )


def _column(array: pa.Array, type: ColumnType) -> list[JsonScalar | None]:
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return [None if value is None else to_json(type, value) for value in array.to_pylist()]
