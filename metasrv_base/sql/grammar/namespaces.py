"""Statements about catalogs and schemas. A DATABASE is a schema."""

from metasrv_base.sql.commands import (
    CreateCatalogStatement,
    CreateSchemaStatement,
    DropCatalogStatement,
    DropSchemaStatement,
)
from metasrv_base.sql.names import name_in_catalog
from metasrv_base.sql.options import options
from metasrv_base.sql.reader import Reader
from metasrv_base.wire.api.tables import CatalogSpec, SchemaSpec


def create_schema(reader: Reader) -> CreateSchemaStatement:
    """Reads what follows CREATE SCHEMA: `[IF NOT EXISTS] [catalog.]name [WITH (..)]`."""
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    schema = name_in_catalog(reader, "a schema", "/name")
    options_read = options(reader) if reader.takes("WITH") else {}
    spec = SchemaSpec(name=schema.name, if_not_exists=if_not_exists, options=options_read)
    return CreateSchemaStatement(schema.catalog, spec)


def drop_schema(reader: Reader) -> DropSchemaStatement:
    if_exists = reader.takes("IF", "EXISTS")
    schema = name_in_catalog(reader, "a schema", "/name")
    return DropSchemaStatement(schema, _cascade(reader), if_exists)


def create_catalog(reader: Reader) -> CreateCatalogStatement:
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = reader.name("a catalog", "/name")
    options_read = options(reader) if reader.takes("WITH") else {}
    return CreateCatalogStatement(
        CatalogSpec(name=name, if_not_exists=if_not_exists, options=options_read)
    )


def drop_catalog(reader: Reader) -> DropCatalogStatement:
    if_exists = reader.takes("IF", "EXISTS")
    name = reader.name("a catalog", "/name")
    return DropCatalogStatement(name, _cascade(reader), if_exists)


def _cascade(reader: Reader) -> bool:
    if reader.takes("RESTRICT"):
        return False
    return reader.takes("CASCADE")
