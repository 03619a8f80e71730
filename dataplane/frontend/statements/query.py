"""Parses the query of a read strictly. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from dataplane.frontend.catalog.schema import Schema, StoredIndex
from dataplane.frontend.statements.parameters import PARAMETERS
from dataplane.frontend.statements.scans import RowScan, Within
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.schema.entrycodec import encode_values
from metasrv_base.schema.keycodec import encode
from metasrv_base.schema.values import Value, from_json
from metasrv_base.wire.frontend.rows import ROWS_MAX
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.limits import MAX_LAG_MS_MAX

LIMIT = 1_000
"""Rows of a page, if nothing is said."""
PARAMETERS_MAX = 4_096
ENDS = ("from", "to")

Asked = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class EntryRange:
    """A range of entries of an index."""

    first: bytes
    end: bytes | None
    """Exclusive; None: to the last."""


def read_query(raw: bytes, allowed: frozenset[str]) -> Asked:
    """Returns the values by parameter. Raises Refused for an unknown parameter, or one that is
    repeated and may not be."""
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=PARAMETERS_MAX,
        )
    except ValueError:
        raise Refused("invalid-request", expected="a query in UTF-8") from None
    params: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in allowed:
            expected = "one of " + ", ".join(sorted(allowed))
            raise Refused("invalid-request", found=name, expected=expected)
        params.setdefault(name, []).append(value)
        if len(params[name]) > 1 and not PARAMETERS[name].repeated:
            raise Refused("invalid-request", expected=f"{name} once in the query")
    return params


def limit_of(params: Asked) -> int | None:
    """Reads the parameter `limit`; returns None if there is none. Raises Refused."""
    text = params.get("limit", [None])[0]
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= ROWS_MAX:
        return int(text)
    raise Refused("invalid-request", found=text[:64], expected=f"limit from 1 to {ROWS_MAX}")


def max_lag_of(params: Asked) -> int | None:
    """Reads the parameter `max_lag`, in ms; returns None if there is none. Raises Refused."""
    text = params.get("max_lag", [None])[0]
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) <= 7 and 1 <= int(text) <= MAX_LAG_MS_MAX:
        return int(text)
    expected = f"max_lag: ms, from 1 to {MAX_LAG_MS_MAX}"
    raise Refused("invalid-request", found=text[:64], expected=expected)


def is_stateless(params: Asked) -> bool:
    """Whether each page is a transaction of its own. Raises Refused."""
    text = params.get("apart", ["false"])[0]
    if text not in ("true", "false"):
        raise Refused("invalid-request", found=text[:64], expected="apart: true or false")
    return text == "true"


def key_of(columns: Sequence[LayoutColumn], texts: Sequence[str]) -> tuple[Value, ...]:
    """A whole primary key. Raises Refused."""
    values = _values(columns, texts, "key")
    if len(values) < len(columns) or None in values:
        names = ", ".join(column.name for column in columns)
        raise Refused("invalid-request", found=", ".join(texts)[:64], expected=f"key: {names}")
    return tuple(value for value in values if value is not None)


def keys_of(columns: Sequence[LayoutColumn], keys: Sequence[Sequence[object]]) -> list[list[Value]]:
    """Whole primary keys, of their JSON values. Raises Refused."""
    return [_key(columns, values, f"/keys/{position}") for position, values in enumerate(keys)]


def _key(columns: Sequence[LayoutColumn], values: Sequence[object], pointer: str) -> list[Value]:
    if len(values) != len(columns) or None in values:
        expected = "a value of each: " + ", ".join(column.name for column in columns)
        raise Refused("invalid-request", pointer=pointer, expected=expected)
    pairs = zip(columns, values, strict=True)
    return [from_json(column.type, value, f"{pointer}/{column.name}") for column, value in pairs]


def rows_asked(schema: Schema, params: Asked) -> RowScan:
    """A scan by `columns` or `column_ids`, `from`, `to` and `region`. Raises Refused; Conflict
    `schema-version-stale` for an id of a column that is gone."""
    layout = schema.layout
    return RowScan(schema, _columns(layout, params), _within(layout, params))


def _columns(layout: Layout, params: Asked) -> tuple[LayoutColumn, ...]:
    if "column_ids" not in params:
        return layout.chosen(params["columns"][0].split(",") if "columns" in params else None)
    if "columns" in params:
        raise Refused("invalid-request", expected="columns, or column_ids")
    by_id = {str(column.id): column for column in layout.columns}
    texts = params["column_ids"][0].split(",")
    if not all(text in by_id for text in texts):
        raise Conflict("schema-version-stale", current=layout.schema_version)
    return tuple(by_id[text] for text in texts)


def _within(layout: Layout, params: Asked) -> Within:
    first, end = (
        _key_prefix(layout, params[name], name) if name in params else None for name in ENDS
    )
    return Within(first or b"", end, region_of(layout, params))


def region_of(layout: Layout, params: Asked) -> int | None:
    """Number of the only region asked. Raises Refused."""
    if "region" not in params:
        return None
    text = params["region"][0]
    if text.isascii() and text.isdecimal() and len(text) <= 5:
        if int(text) < layout.router.regions:
            return int(text)
        raise NotFound(what="region", name=f"{layout.name} {text}")
    raise Refused("invalid-request", found=text[:64], expected="region: its number")


def _key_prefix(layout: Layout, texts: Sequence[str], name: str) -> bytes:
    """The first values of a key, encoded."""
    values = _values(layout.key, texts, name)
    whole = [value for value in values if value is not None]
    if len(whole) < len(values):
        raise Refused("invalid-request", found="null", expected=f"{name}: values of a key")
    return encode(layout.key_types[: len(whole)], whole)


def range_of(index: StoredIndex, params: Asked) -> EntryRange:
    """Entries that begin with `eq`; or from `from`, up to but not `to`. Raises Refused."""
    if "eq" in params:
        if "from" in params or "to" in params:
            raise Refused("invalid-request", expected="eq, or from and to")
        first = _encoded(index, params["eq"], "eq")
        return EntryRange(first, after_prefix(first))
    end = _encoded(index, params["to"], "to") if "to" in params else None
    return EntryRange(_encoded(index, params.get("from", ()), "from"), end)


def after_prefix(prefix: bytes) -> bytes | None:
    """The lowest key above every key that begins with the prefix; None: there is nothing above."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _encoded(index: StoredIndex, texts: Sequence[str], name: str) -> bytes:
    values = _values(index.columns, texts, name)
    return encode_values(index.types[: len(values)], values)


def _values(columns: Sequence[LayoutColumn], texts: Sequence[str], name: str) -> list[Value | None]:
    if len(texts) > len(columns):
        expected = f"{name} at most {len(columns)} times"
        raise Refused("invalid-request", found=len(texts), expected=expected)
    return [_value(*pair, name) for pair in zip(columns, texts, strict=False)]


def _value(column: LayoutColumn, text: str, name: str) -> Value | None:
    """A JSON value; a bare word is a string."""
    try:
        value = strict_json.parse(text.encode())
    except Refused:
        if text[:1] in ('"', "[", "{"):
            raise
        value = text
    return None if value is None else from_json(column.type, value, f"/{name}/{column.name}")
