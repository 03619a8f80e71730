"""ALTER TABLE of the operations of `POST T/alter`."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from metasrv_base.sql.commands import QualifiedTable
from metasrv_base.sql.identifiers import identifier
from metasrv_base.sql.options import option_text
from metasrv_base.sql.printing.print_table import column_text, default_text, table_text
from metasrv_base.sql.quoting import quoted
from metasrv_base.sql.types import type_name
from metasrv_base.wire.api.changes import (
    AddColumn,
    AddConstraint,
    AlterOperation,
    AlterRequest,
    AlterType,
    DropColumn,
    DropConstraint,
    RenameColumn,
    SetCopies,
    SetDefault,
    SetNullable,
    SetOptions,
    ValidateConstraint,
)


def alter_table(table: QualifiedTable, request: AlterRequest) -> str:
    condition = "IF EXISTS " if request.if_exists else ""
    operations = ", ".join(_texts(request.operations))
    return f"ALTER TABLE {condition}{table_text(table)} {operations}"


def _texts(operations: Iterable[AlterOperation]) -> Iterator[str]:
    for operation in operations:
        if isinstance(operation, SetOptions):
            yield from _options(operation)
        else:
            yield _text(operation)


def _options(operation: SetOptions) -> Iterator[str]:
    """Yields what sets and what removes: SQL has a word for each."""
    options_set = {name: value for name, value in operation.options.items() if value is not None}
    if options_set:
        pairs = (f"{option_text(name)} = {quoted(value)}" for name, value in options_set.items())
        yield f"SET ({', '.join(pairs)})"
    if removed := [name for name, value in operation.options.items() if value is None]:
        yield f"RESET ({', '.join(map(option_text, removed))})"


def _text(
    operation: SetCopies
    | RenameColumn
    | AddColumn
    | DropColumn
    | AlterType
    | SetDefault
    | SetNullable
    | AddConstraint
    | ValidateConstraint
    | DropConstraint,
) -> str:
    match operation:
        case AddColumn(column=column, after=after):
            behind = "" if after is None else f" AFTER {identifier(after)}"
            return f"ADD COLUMN {column_text(column)}{behind}"
        case DropColumn(name=name):
            return f"DROP COLUMN {identifier(name)}"
        case RenameColumn(name=name, new_name=new_name):
            return f"RENAME COLUMN {identifier(name)} TO {identifier(new_name)}"
        case AddConstraint():
            return _constraint(operation)
        case ValidateConstraint(name=name):
            return f"VALIDATE CONSTRAINT {identifier(name)}"
        case DropConstraint(name=name):
            return f"DROP CONSTRAINT {identifier(name)}"
        case SetCopies():
            return f"SET {' '.join(_copies(operation))}"
        case AlterType() | SetDefault() | SetNullable():
            return f"ALTER COLUMN {identifier(operation.name)} {_column_change(operation)}"
        case _:
            assert_never(operation)


def _copies(operation: SetCopies) -> Iterator[str]:
    if operation.replicas is not None:
        yield f"REPLICAS {str(operation.replicas).upper()}"
    if operation.min_in_sync is not None:
        yield f"MIN IN SYNC {str(operation.min_in_sync).upper()}"
    if operation.reason is not None:
        yield f"REASON {quoted(operation.reason)}"


def _constraint(operation: AddConstraint) -> str:
    valid = " NOT VALID" if operation.not_valid else ""
    if operation.not_null is not None:
        condition = f"NOT NULL {identifier(operation.not_null)}"
    else:
        condition = f"CHECK ({operation.check})"
    return f"ADD CONSTRAINT {identifier(operation.name)} {condition}{valid}"


def _column_change(operation: AlterType | SetDefault | SetNullable) -> str:
    match operation:
        case AlterType(type=type):
            return f"TYPE {type_name(type)}"
        case SetDefault(default=None):
            return "DROP DEFAULT"
        case SetDefault(default=default):
            return f"SET DEFAULT {default_text(default, None)}"
        case SetNullable(nullable=nullable):
            return f"{'DROP' if nullable else 'SET'} NOT NULL"
