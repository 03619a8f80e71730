"""A column as CREATE TABLE and ADD COLUMN define it: name, type, nullability, default."""

from dataclasses import dataclass

from pydantic import JsonValue

from metasrv_base.errors import Refused
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.sql.constants import constant
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.types import type_text
from metasrv_base.wire.api.tables import ColumnSpec

_NOW: JsonValue = {"expression": "now()"}
_LATER = {
    "CHECK": "ALTER TABLE .. ADD CONSTRAINT .. CHECK (..) once the table is there",
    "CONSTRAINT": "ALTER TABLE .. ADD CONSTRAINT once the table is there",
    "UNIQUE": "CREATE UNIQUE INDEX once the table is there",
    "REFERENCES": "no foreign keys: there are none",
    "COLLATE": "no collation: strings are ordered by their bytes",
    "GENERATED": "no generated columns: there are none",
    "AUTO_INCREMENT": "no generated values: there are none",
    "COMMENT": "no comment on a column: a table has one",
}


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    spec: ColumnSpec
    is_primary_key: bool
    """Whether its own line says PRIMARY KEY."""


def column(reader: Reader, pointer: str) -> ColumnDefinition:
    """Reads `name type [NOT NULL | NULL] [DEFAULT constant] [PRIMARY KEY]`, those at the end in any
    order."""
    name = reader.name("a column", f"{pointer}/name")
    type = type_text(reader, f"{pointer}/type")
    nullable: bool | None = None
    default: JsonValue = None
    is_key = has_default = False
    while True:
        if nullable is None and reader.takes("NOT", "NULL"):
            nullable = False
        elif nullable is None and reader.takes("NULL"):
            nullable = True
        elif not has_default and reader.takes("DEFAULT"):
            has_default, default = True, default_of(reader, type, f"{pointer}/default")
        elif not is_key and reader.takes("PRIMARY", "KEY"):
            is_key = True
        else:
            break
    if later := _LATER.get(reader.token.word or ""):
        raise reader.unexpected(later)
    if is_key and nullable:
        raise reader.unexpected("a column of the primary key that is NOT NULL")
    spec = ColumnSpec(
        name=name,
        type=type,
        nullable=not is_key if nullable is None else nullable,
        default=default,
    )
    return ColumnDefinition(spec, is_key)


def default_of(reader: Reader, type: str | None, pointer: str) -> JsonValue:
    """Reads the value behind DEFAULT; *type* is None if the statement does not say it."""
    for words in (("NOW", "(", ")"), ("CURRENT_TIMESTAMP",)):
        with reader.placed(pointer):
            if reader.takes(*words):
                return _NOW
    return constant(reader, _type(type), pointer)


def _type(text: str | None) -> ColumnType | None:
    """The type, as far as it is one; a text that is none is refused with the rest of the spec."""
    try:
        return None if text is None else parse_type(text)
    except Refused:
        return None
