"""ALTER TABLE: the operations of `POST T/alter`, and the two ways to rename."""

from collections.abc import Callable, Mapping
from typing import Any

from metasrv_base.sql.commands import AlterTableStatement, QualifiedTable, RenameTableStatement
from metasrv_base.sql.grammar.columns import column, default_of
from metasrv_base.sql.names import table_name
from metasrv_base.sql.options import option_name, options
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.types import type_text
from metasrv_base.wire.api.changes import (
    AddColumn,
    AddConstraint,
    AlterOperation,
    AlterRequest,
    AlterType,
    DropColumn,
    DropConstraint,
    RenameColumn,
    RenameRequest,
    SetCopies,
    SetDefault,
    SetNullable,
    SetOptions,
    ValidateConstraint,
)
from metasrv_base.wire.api.tables import DEFAULT_NUMBER

TypeOf = Callable[[QualifiedTable, str], str | None]
"""The type of a column as the API writes it; None: there is no such column. The value behind SET
DEFAULT is read by it."""


def alter_table(reader: Reader, type_of: TypeOf) -> AlterTableStatement | RenameTableStatement:
    """Reads what follows ALTER TABLE."""
    if_exists = reader.takes("IF", "EXISTS")
    table = table_name(reader)
    if reader.takes("SET", "SCHEMA"):
        schema = reader.name("a schema", "/new_schema")
        request = RenameRequest(new_name=table.table, new_schema=schema, if_exists=if_exists)
        return RenameTableStatement(table, request)
    if reader.takes("RENAME", "TO"):
        new_name = reader.name("a table", "/new_name")
        return RenameTableStatement(table, RenameRequest(new_name=new_name, if_exists=if_exists))
    operations = reader.several(
        lambda number: _operation(reader, table, type_of, f"/operations/{number}")
    )
    return AlterTableStatement(table, AlterRequest(operations=operations, if_exists=if_exists))


def _operation(
    reader: Reader, table: QualifiedTable, type_of: TypeOf, pointer: str
) -> AlterOperation:
    word = reader.choose(*_OPERATIONS, "ALTER")
    if word == "ALTER":
        return _alter_column(reader, table, type_of, pointer)
    return _OPERATIONS[word](reader, pointer)


def _add(reader: Reader, pointer: str) -> AlterOperation:
    if reader.takes("CONSTRAINT"):
        return _constraint(reader, pointer)
    reader.takes("COLUMN")
    if reader.is_next("IF"):
        raise reader.unexpected("a column: ADD COLUMN has no IF NOT EXISTS")
    definition = column(reader, f"{pointer}/column")
    if definition.is_primary_key:
        raise reader.unexpected("a column outside the primary key, which cannot be altered")
    after = reader.name("a column", f"{pointer}/after") if reader.takes("AFTER") else None
    return AddColumn(op="add_column", column=definition.spec, after=after)


def _constraint(reader: Reader, pointer: str) -> AddConstraint:
    name = reader.name("a constraint", f"{pointer}/name")
    check: str | None = None
    not_null: str | None = None
    word = reader.choose("CHECK", "NOT", "UNIQUE")
    if word == "UNIQUE":
        raise reader.unexpected("CHECK (..) or NOT NULL column; CREATE UNIQUE INDEX makes one")
    if word == "CHECK":
        check, reader.places[f"{pointer}/check"] = reader.bracketed()
    else:
        reader.must_take("NULL")
        not_null = reader.name("a column", f"{pointer}/not_null")
    return AddConstraint(
        op="add_constraint",
        name=name,
        check=check,
        not_null=not_null,
        not_valid=reader.takes("NOT", "VALID"),
    )


def _drop(reader: Reader, pointer: str) -> AlterOperation:
    if reader.takes("CONSTRAINT"):
        name = reader.name("a constraint", f"{pointer}/name")
        return DropConstraint(op="drop_constraint", name=name)
    reader.takes("COLUMN")
    return DropColumn(op="drop_column", name=reader.name("a column", f"{pointer}/name"))


def _rename(reader: Reader, pointer: str) -> AlterOperation:
    if reader.is_next("TO"):
        raise reader.unexpected("a column: RENAME TO is a statement of its own")
    reader.takes("COLUMN")
    name = reader.name("a column", f"{pointer}/name")
    reader.must_take("TO")
    new_name = reader.name("a column", f"{pointer}/new_name")
    return RenameColumn(op="rename_column", name=name, new_name=new_name)


def _validate(reader: Reader, pointer: str) -> AlterOperation:
    reader.must_take("CONSTRAINT")
    name = reader.name("a constraint", f"{pointer}/name")
    return ValidateConstraint(op="validate_constraint", name=name)


def _set(reader: Reader, pointer: str) -> AlterOperation:
    if reader.is_next("REPLICAS") or reader.is_next("MIN"):
        return _copies(reader, pointer)
    return SetOptions(op="set_options", options={**options(reader, f"{pointer}/options")})


def _copies(reader: Reader, pointer: str) -> SetCopies:
    """Reads REPLICAS n, MIN IN SYNC n or both, DEFAULT for that of the placement, and REASON."""
    fields: dict[str, Any] = {}
    for words, name in ((("REPLICAS",), "replicas"), (("MIN", "IN", "SYNC"), "min_in_sync")):
        if reader.takes(*words):
            fields[name] = (
                DEFAULT_NUMBER
                if reader.takes("DEFAULT")
                else reader.whole_number("a number of copies", f"{pointer}/{name}")
            )
    if reader.takes("REASON"):
        fields["reason"] = reader.text("a reason", f"{pointer}/reason")
    return SetCopies(op="set_copies", **fields)


def _reset(reader: Reader, pointer: str) -> AlterOperation:
    with reader.placed(f"{pointer}/options"):
        names = reader.listed(lambda _: option_name(reader))
    return SetOptions(op="set_options", options=dict.fromkeys(names))


_OPERATIONS: Mapping[str, Callable[[Reader, str], AlterOperation]] = {
    "ADD": _add,
    "DROP": _drop,
    "RENAME": _rename,
    "VALIDATE": _validate,
    "SET": _set,
    "RESET": _reset,
}


def _alter_column(
    reader: Reader, table: QualifiedTable, type_of: TypeOf, pointer: str
) -> AlterType | SetDefault | SetNullable:
    reader.takes("COLUMN")
    name = reader.name("a column", f"{pointer}/name")
    if reader.takes("TYPE") or reader.takes("SET", "DATA", "TYPE"):
        return AlterType(op="alter_type", name=name, type=type_text(reader, f"{pointer}/type"))
    if reader.takes("SET", "DEFAULT"):
        value = default_of(reader, type_of(table, name), f"{pointer}/default")
        return SetDefault(op="set_default", name=name, default=value)
    if reader.takes("DROP", "DEFAULT"):
        return SetDefault(op="set_default", name=name, default=None)
    for words, nullable in ((("SET", "NOT", "NULL"), False), (("DROP", "NOT", "NULL"), True)):
        if reader.takes(*words):
            return SetNullable(op="set_nullable", name=name, nullable=nullable)
    raise reader.unexpected("TYPE, SET DEFAULT, DROP DEFAULT, SET NOT NULL or DROP NOT NULL")
