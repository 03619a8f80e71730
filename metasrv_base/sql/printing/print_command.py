"""A command printed as the SQL that is read as an equal command."""

from typing import TypeAlias, assert_never

from metasrv_base.sql import commands as sql
from metasrv_base.sql.identifiers import dotted, identifier
from metasrv_base.sql.options import options_text
from metasrv_base.sql.printing import print_placing
from metasrv_base.sql.printing.print_alter import alter_table
from metasrv_base.sql.printing.print_table import create_index, create_table, table_text
from metasrv_base.wire.api.tables import CatalogSpec, SchemaSpec

OfPlacing: TypeAlias = (
    sql.CreatePlacementStatement
    | sql.AlterPlacementStatement
    | sql.RenamePlacementStatement
    | sql.CreateTablespaceStatement
    | sql.AlterTablespaceStatement
    | sql.RenameTablespaceStatement
)
OfHolder: TypeAlias = (
    OfPlacing
    | sql.CreateSchemaStatement
    | sql.DropSchemaStatement
    | sql.CreateCatalogStatement
    | sql.DropCatalogStatement
    | sql.DropPlacementStatement
    | sql.DropTablespaceStatement
)

IF_EXISTS = "IF EXISTS "
IF_NOT_EXISTS = "IF NOT EXISTS "


def text_of(command: sql.Command) -> str:
    """Returns the statement, without the semicolon."""
    match command:
        case sql.Begin():
            return "BEGIN"
        case sql.Commit():
            return "COMMIT"
        case sql.Explain(change):
            return f"EXPLAIN {_change(change)}"
        case sql.Show():
            return _show(command)
        case sql.ShowCreateTable(table):
            return f"SHOW CREATE TABLE {table_text(table)}"
        case sql.DescribeTable(table):
            return f"DESCRIBE {table_text(table)}"
        case sql.SelectView():
            return _select_view(command)
        case _:
            return _change(command)


def _select_view(command: sql.SelectView) -> str:
    columns = "*" if command.columns is None else ", ".join(map(identifier, command.columns))
    text = f"SELECT {columns} FROM information_schema.{identifier(command.view)}"
    if command.where is not None:
        text += f" WHERE {command.where}"
    if command.order_by:
        terms = (
            identifier(order.column) + (" DESC" if order.descending else "")
            for order in command.order_by
        )
        text += f" ORDER BY {', '.join(terms)}"
    return text if command.limit is None else f"{text} LIMIT {command.limit}"


def _show(command: sql.Show) -> str:
    match command.of:
        case None:
            return f"SHOW {command.listing.upper()}"
        case sql.QualifiedTable():
            return f"SHOW {command.listing.upper()} FROM {table_text(command.of)}"
        case sql.NameInCatalog(name, catalog):
            return f"SHOW {command.listing.upper()} FROM {dotted(catalog, name)}"


def _change(change: sql.Change) -> str:
    match change:
        case sql.CreateTableStatement(table, spec):
            return create_table(table, spec)
        case sql.DropTableStatement(table, if_exists):
            return f"DROP TABLE {IF_EXISTS if if_exists else ''}{table_text(table)}"
        case sql.RenameTableStatement():
            return _rename(change)
        case sql.AlterTableStatement(table, request):
            return alter_table(table, request)
        case sql.TruncateTableStatement(table):
            return f"TRUNCATE TABLE {table_text(table)}"
        case sql.UndropTableStatement():
            return _undrop(change)
        case sql.CreateIndexStatement(table, index):
            return create_index(table, index)
        case sql.ValidateIndexStatement(table, name):
            return f"ALTER INDEX {identifier(name)} ON {table_text(table)} VALIDATE"
        case sql.DropIndexStatement(table, name, if_exists):
            condition = IF_EXISTS if if_exists else ""
            return f"DROP INDEX {condition}{identifier(name)} ON {table_text(table)}"
        case _:
            return _of_holder(change)


def _rename(change: sql.RenameTableStatement) -> str:
    table, request = change.table, change.request
    target = dotted(request.new_schema, request.new_name)
    if request.exchange:
        return f"EXCHANGE TABLES {table_text(table)} AND {target}"
    return f"RENAME TABLE {IF_EXISTS if request.if_exists else ''}{table_text(table)} TO {target}"


def _undrop(change: sql.UndropTableStatement) -> str:
    request = change.request
    by_id = "" if request.table_id is None else f" WITH ID {request.table_id}"
    name = "" if request.new_name is None else f" AS {identifier(request.new_name)}"
    return f"UNDROP TABLE {table_text(change.table)}{by_id}{name}"


def _of_holder(change: OfHolder) -> str:
    match change:
        case sql.CreateSchemaStatement(catalog, spec):
            return _created("SCHEMA", dotted(catalog, spec.name), spec)
        case sql.CreateCatalogStatement(spec):
            return _created("CATALOG", identifier(spec.name), spec)
        case sql.DropSchemaStatement(schema, cascade, if_exists):
            return _dropped("SCHEMA", _full(schema), if_exists, cascade)
        case sql.DropCatalogStatement(name, cascade, if_exists):
            return _dropped("CATALOG", identifier(name), if_exists, cascade)
        case sql.DropPlacementStatement(name, if_exists):
            return _dropped("PLACEMENT", identifier(name), if_exists)
        case sql.DropTablespaceStatement(space, if_exists):
            return _dropped("TABLESPACE", _full(space), if_exists)
        case _:
            return _of_placing(change)


def _of_placing(change: OfPlacing) -> str:
    match change:
        case sql.CreatePlacementStatement():
            return print_placing.create_placement(change)
        case sql.AlterPlacementStatement():
            return print_placing.alter_placement(change)
        case sql.CreateTablespaceStatement():
            return print_placing.create_tablespace(change)
        case sql.AlterTablespaceStatement():
            return print_placing.alter_tablespace(change)
        case sql.RenamePlacementStatement(name, new_name, if_exists):
            return _renamed("PLACEMENT", identifier(name), new_name, if_exists)
        case sql.RenameTablespaceStatement(space, new_name, if_exists):
            return _renamed("TABLESPACE", _full(space), new_name, if_exists)
        case _:
            assert_never(change)


def _created(what: str, name: str, spec: SchemaSpec | CatalogSpec) -> str:
    condition = IF_NOT_EXISTS if spec.if_not_exists else ""
    with_options = f" WITH {options_text(spec.options)}" if spec.options else ""
    return f"CREATE {what} {condition}{name}{with_options}"


def _dropped(what: str, name: str, if_exists: bool, cascade: bool = False) -> str:
    contents = " CASCADE" if cascade else ""
    return f"DROP {what} {IF_EXISTS if if_exists else ''}{name}{contents}"


def _full(name: sql.NameInCatalog) -> str:
    return dotted(name.catalog, name.name)


def _renamed(what: str, name: str, new_name: str, if_exists: bool) -> str:
    condition = IF_EXISTS if if_exists else ""
    return f"ALTER {what} {condition}{name} RENAME TO {identifier(new_name)}"
