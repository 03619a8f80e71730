"""CREATE TABLE: columns, primary key, partitions, storage, options."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from metasrv_base.errors import Refused
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.sql.commands import CreateTableStatement
from metasrv_base.sql.constants import constant
from metasrv_base.sql.grammar.columns import ColumnDefinition, column
from metasrv_base.sql.names import table_name
from metasrv_base.sql.options import options
from metasrv_base.sql.reader import Reader
from metasrv_base.wire.api.tables import ColumnSpec, HashPartition, RangePartition, TableSpec

_KEY = ("PRIMARY", "KEY")
_REFUSED = {
    "CONSTRAINT": "a column or PRIMARY KEY: add constraints by ALTER TABLE once it is there",
    "CHECK": "a column or PRIMARY KEY: ALTER TABLE .. ADD CONSTRAINT .. CHECK (..) adds a check",
    "UNIQUE": "a column or PRIMARY KEY: CREATE UNIQUE INDEX makes a unique index",
    "FOREIGN": "a column or PRIMARY KEY: there are no foreign keys",
    "EXCLUDE": "a column or PRIMARY KEY: there are no exclusion constraints",
    "LIKE": "a column or PRIMARY KEY: tables are not copied",
}
"""First words of elements that a table cannot have when it is made."""


@dataclass(slots=True)
class _Draft:
    """A table, as far as it has been read."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    primary_key: tuple[str, ...] | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields of the spec, from behind the columns."""

    @property
    def specs(self) -> list[ColumnSpec]:
        return [definition.spec for definition in self.columns]


def create_table(reader: Reader) -> CreateTableStatement:
    """Reads what follows CREATE TABLE."""
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = table_name(reader, "a table, as [[catalog.]schema.]name")
    draft = _Draft()
    begin = reader.token
    reader.listed(lambda _: _element(reader, draft))
    key = draft.primary_key or tuple(
        definition.spec.name for definition in draft.columns if definition.is_primary_key
    )
    if not key:
        raise reader.unexpected("PRIMARY KEY (..) in the brackets", token=begin)
    while not reader.is_at_end:
        _clause(reader, draft)
    spec = TableSpec(
        name=name.table,
        if_not_exists=if_not_exists,
        columns=tuple(_in_key(spec, key) for spec in draft.specs),
        primary_key=key,
        **draft.fields,
    )
    return CreateTableStatement(name, spec)


def _element(reader: Reader, draft: _Draft) -> None:
    """Reads one line between the brackets."""
    if reader.is_next(*_KEY):
        if draft.primary_key or any(definition.is_primary_key for definition in draft.columns):
            raise reader.unexpected("one primary key")
        reader.must_take(*_KEY)
        with reader.placed("/primary_key"):
            draft.primary_key = names(reader, "/primary_key")
        return
    if expected := _REFUSED.get(reader.token.word or ""):
        raise reader.unexpected(expected)
    definition = column(reader, f"/columns/{len(draft.columns)}")
    if definition.is_primary_key and (
        draft.primary_key or any(other.is_primary_key for other in draft.columns)
    ):
        raise reader.unexpected("one primary key: PRIMARY KEY (a, b) names several columns")
    draft.columns.append(definition)


def _in_key(spec: ColumnSpec, key: Sequence[str]) -> ColumnSpec:
    """Columns of the primary key are not nullable, whether the text says so or not, as in the
    standard."""
    return spec.model_copy(update={"nullable": spec.nullable and spec.name not in key})


def names(reader: Reader, pointer: str, what: str = "a column") -> tuple[str, ...]:
    """Reads `( name, .. )`."""
    return reader.listed(lambda number: reader.name(what, f"{pointer}/{number}"))


# -- behind the brackets


def _clause(reader: Reader, draft: _Draft) -> None:
    for words, (field_name, read) in _CLAUSES.items():
        if reader.is_next(*words):
            if field_name in draft.fields:
                raise reader.unexpected("each clause once")
            reader.must_take(*words)
            draft.fields[field_name] = read(reader, draft)
            return
    choices = [words[0] for words in _CLAUSES]
    expected = f"{', '.join(' '.join(words) for words in _CLAUSES)} or the end of the statement"
    raise reader.unexpected(expected, choices=choices)


def _partition(reader: Reader, draft: _Draft) -> HashPartition | RangePartition:
    method = reader.choose("HASH", "RANGE")
    columns = names(reader, "/partition/columns")
    if method == "HASH":
        reader.must_take("PARTITIONS")
        count = reader.whole_number("a number of regions", "/partition/count")
        return HashPartition(by="hash", columns=columns, count=count)
    reader.must_take("SPLIT", "AT", "VALUES")
    types = _types(draft.specs, columns)
    with reader.placed("/partition/bounds"):
        bounds = reader.several(lambda number: _bound(reader, types, number))
    return RangePartition(by="range", columns=columns, bounds=bounds)


def _bound(
    reader: Reader, types: Sequence[ColumnType | None], number: int
) -> tuple[JsonScalar, ...]:
    pointer = f"/partition/bounds/{number}"

    def value(position: int) -> JsonScalar:
        type = types[position] if position < len(types) else None
        token = reader.token
        bound = constant(reader, type, f"{pointer}/{position}")
        if bound is None:
            raise reader.unexpected("a constant that is not NULL", token=token)
        return bound

    with reader.placed(pointer):
        return reader.listed(value)


def _types(specs: Sequence[ColumnSpec], columns: Sequence[str]) -> list[ColumnType | None]:
    texts = {spec.name: spec.type for spec in specs}
    types: list[ColumnType | None] = []
    for name in columns:
        try:
            types.append(parse_type(texts.get(name, "")))
        except Refused:
            types.append(None)
    return types


def _colocation(reader: Reader, draft: _Draft) -> tuple[str, ...]:
    return names(reader, "/colocation_columns")


def _named(field_name: str, expected: str) -> Callable[[Reader, _Draft], str]:
    return lambda reader, draft: reader.name(expected, f"/{field_name}")


def _replicas(reader: Reader, draft: _Draft) -> int:
    return reader.whole_number("a number of copies", "/replicas")


def _min_in_sync(reader: Reader, draft: _Draft) -> int:
    return reader.whole_number("a number of copies", "/min_in_sync")


def _options(reader: Reader, draft: _Draft) -> dict[str, str]:
    """Reads the options, and the numbers of copies that stand among them."""

    def number(name: str, read: Callable[[Reader, _Draft], int]) -> None:
        if name in draft.fields:
            raise reader.unexpected("each clause once")
        draft.fields[name] = read(reader, draft)

    numbers = {"replicas": _replicas, "min_in_sync": _min_in_sync}
    fields = {name: partial(number, name, read) for name, read in numbers.items()}
    return options(reader, fields=fields)


_CLAUSES: Mapping[tuple[str, ...], tuple[str, Callable[[Reader, _Draft], Any]]] = {
    ("PARTITION", "BY"): ("partition", _partition),
    ("COLOCATE", "BY"): ("colocation_columns", _colocation),
    ("PLACEMENT",): ("placement", _named("placement", "a placement")),
    ("TABLESPACE",): ("tablespace", _named("tablespace", "a tablespace")),
    ("STORAGE", "PROFILE"): ("storage_profile", _named("storage_profile", "a storage profile")),
    ("REPLICAS",): ("replicas", _replicas),
    ("MIN", "IN", "SYNC"): ("min_in_sync", _min_in_sync),
    ("WITH",): ("options", _options),
}
"""Words of a clause -> the field of the spec that it fills, and what reads the rest of it."""
