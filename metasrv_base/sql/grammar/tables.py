"""Statements about a table or an index as a whole."""

from metasrv_base.sql.commands import (
    AlterTableStatement,
    CreateIndexStatement,
    DropIndexStatement,
    DropTableStatement,
    QualifiedTable,
    RenameTableStatement,
    TruncateTableStatement,
    UndropTableStatement,
    ValidateIndexStatement,
)
from metasrv_base.sql.names import table_name
from metasrv_base.sql.reader import Reader
from metasrv_base.wire.api.changes import AlterRequest, RenameRequest, SetOptions, UndropRequest
from metasrv_base.wire.api.tables import IndexSpec

COMMENT = "comment"


def drop_table(reader: Reader) -> DropTableStatement:
    """Reads what follows DROP TABLE."""
    if_exists = reader.takes("IF", "EXISTS")
    table = table_name(reader)
    if reader.is_next(","):
        raise reader.unexpected("one table: several in one version are BEGIN; DROP ..; COMMIT")
    if reader.is_next("CASCADE"):
        raise reader.unexpected("the end of the statement: nothing depends on a table")
    return DropTableStatement(table, if_exists)


def rename_table(reader: Reader) -> RenameTableStatement:
    """Reads what follows RENAME TABLE: `[IF EXISTS] table TO [schema.]name`."""
    if_exists = reader.takes("IF", "EXISTS")
    table = table_name(reader)
    reader.must_take("TO")
    return RenameTableStatement(table, _new_name(reader, table, if_exists=if_exists))


def exchange_tables(reader: Reader) -> RenameTableStatement:
    """Reads what follows EXCHANGE TABLES: `table AND [schema.]name`."""
    table = table_name(reader)
    reader.must_take("AND")
    return RenameTableStatement(table, _new_name(reader, table, exchange=True))


def _new_name(
    reader: Reader, table: QualifiedTable, *, exchange: bool = False, if_exists: bool = False
) -> RenameRequest:
    token = reader.token
    other = table_name(reader)
    if other.catalog not in (None, table.catalog):
        raise reader.unexpected("a table of the same catalog", token=token)
    reader.places["/new_name"] = reader.places["/name"]
    return RenameRequest(
        new_name=other.table, new_schema=other.schema, exchange=exchange, if_exists=if_exists
    )


def truncate_table(reader: Reader) -> TruncateTableStatement:
    """Reads what follows TRUNCATE."""
    reader.takes("TABLE")
    return TruncateTableStatement(table_name(reader))


def undrop_table(reader: Reader) -> UndropTableStatement:
    """Reads what follows UNDROP TABLE: `name [WITH ID number] [AS name]`."""
    table = table_name(reader)
    table_id = new_name = None
    if reader.takes("WITH"):
        reader.must_take("ID")
        table_id = reader.whole_number("the id of a dropped table", "/table_id")
    if reader.takes("AS"):
        new_name = reader.name("a table", "/new_name")
    return UndropTableStatement(table, UndropRequest(table_id=table_id, new_name=new_name))


def comment_on_table(reader: Reader) -> AlterTableStatement:
    """Reads what follows COMMENT ON TABLE."""
    table = table_name(reader)
    reader.must_take("IS")
    value = None
    if not reader.takes("NULL"):
        value = reader.text("a comment", "/operations/0/options/comment")
    operation = SetOptions(op="set_options", options={COMMENT: value})
    return AlterTableStatement(table, AlterRequest(operations=(operation,)))


# -- indexes


def create_index(reader: Reader, unique: bool) -> CreateIndexStatement:
    """Reads what follows CREATE [UNIQUE] INDEX: `[IF NOT EXISTS] name ON table (column, ..)
    [NOT VALID]`."""
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = reader.name("an index", "/name")
    name_place = reader.places["/name"]
    reader.must_take("ON")
    table = table_name(reader)
    if reader.is_next("USING"):
        raise reader.unexpected("( and the columns: there is one kind of index")
    columns = reader.listed(lambda number: _indexed(reader, f"/columns/{number}"))
    reader.places["/name"] = name_place
    if reader.is_next("WHERE"):
        raise reader.unexpected("the end of the statement: an index has all rows")
    spec = IndexSpec(
        name=name,
        columns=columns,
        unique=unique,
        if_not_exists=if_not_exists,
        not_valid=reader.takes("NOT", "VALID"),
    )
    return CreateIndexStatement(table, spec)


def _indexed(reader: Reader, pointer: str) -> str:
    name = reader.name("a column", pointer)
    if reader.is_next("DESC"):
        raise reader.unexpected(", or ): an index ascends, and is read in both directions")
    reader.takes("ASC")
    return name


def alter_index(reader: Reader) -> ValidateIndexStatement:
    """Reads what follows ALTER INDEX: `name ON table VALIDATE`."""
    name, table = _index_on(reader)
    reader.must_take("VALIDATE")
    return ValidateIndexStatement(table, name)


def drop_index(reader: Reader) -> DropIndexStatement:
    """Reads what follows DROP INDEX: `[IF EXISTS] name ON table`."""
    if_exists = reader.takes("IF", "EXISTS")
    name, table = _index_on(reader)
    return DropIndexStatement(table, name, if_exists)


def _index_on(reader: Reader) -> tuple[str, QualifiedTable]:
    name = reader.name("an index", "/index")
    if not reader.takes("ON"):
        raise reader.unexpected("ON and the table of the index: an index is named within its table")
    return name, table_name(reader)
