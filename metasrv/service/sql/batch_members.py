"""Changes of SQL as the commands of a batch that say the same. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from metasrv.service.sql.session import SqlSession
from metasrv_base.sql import commands as sql
from metasrv_base.wire.api import batches
from metasrv_base.wire.api.batches import BatchCommandBody
from metasrv_base.wire.model import WireModel


def member_of(session: SqlSession, change: sql.Change) -> BatchCommandBody | None:
    """Returns the command of a batch that says the same; None: a batch takes no such change. It may
    still refuse operations of an ALTER TABLE."""
    member = _MEMBERS.get(type(change))
    command: BatchCommandBody | None = None if member is None else member(session, change)
    return command


def _named(body: WireModel) -> dict[str, Any]:
    """The fields that *body* names."""
    return {field: getattr(body, field) for field in body.model_fields_set}


def _of_table(session: SqlSession, table: sql.QualifiedTable) -> dict[str, Any]:
    name = session.table(table)
    return {"catalog": name.catalog, "schema_name": name.schema, "table": name.table}


def _create_table(session: SqlSession, change: sql.CreateTableStatement) -> BatchCommandBody:
    named = _of_table(session, change.table) | {"table": change.spec}
    return batches.CreatesTable(create_table=batches.TableToMake(**named))


def _drop_table(session: SqlSession, change: sql.DropTableStatement) -> BatchCommandBody:
    named = _of_table(session, change.table)
    drop = batches.TableToDrop(**named, if_exists=change.if_exists)
    return batches.DropsTable(drop_table=drop)


def _rename_table(session: SqlSession, change: sql.RenameTableStatement) -> BatchCommandBody:
    named = _of_table(session, change.table)
    return batches.RenamesTable(
        rename_table=batches.TableToRename(**named, **_named(change.request))
    )


def _alter_table(session: SqlSession, change: sql.AlterTableStatement) -> BatchCommandBody:
    request, named = change.request, _of_table(session, change.table)
    alter = batches.TableToAlter(
        **named, operations=request.operations, if_exists=request.if_exists
    )
    return batches.AltersTable(alter_table=alter)


def _create_schema(session: SqlSession, change: sql.CreateSchemaStatement) -> BatchCommandBody:
    catalog = change.catalog or session.catalog
    schema = batches.SchemaToCreate(catalog=catalog, schema_spec=change.spec)
    return batches.CreatesSchema(create_schema=schema)


def _drop_schema(session: SqlSession, change: sql.DropSchemaStatement) -> BatchCommandBody:
    name = session.schema_named(change.schema)
    drop = batches.SchemaToDrop(
        catalog=name.catalog,
        schema_name=name.schema,
        cascade=change.cascade,
        if_exists=change.if_exists,
    )
    return batches.DropsSchema(drop_schema=drop)


def _create_catalog(session: SqlSession, change: sql.CreateCatalogStatement) -> BatchCommandBody:
    return batches.CreatesCatalog(create_catalog=change.spec)


def _drop_catalog(session: SqlSession, change: sql.DropCatalogStatement) -> BatchCommandBody:
    drop = batches.CatalogToDrop(
        catalog=change.catalog, cascade=change.cascade, if_exists=change.if_exists
    )
    return batches.DropsCatalog(drop_catalog=drop)


def _create_placement(
    session: SqlSession, change: sql.CreatePlacementStatement
) -> BatchCommandBody:
    return batches.CreatesPlacement(create_placement=change.spec)


def _alter_placement(session: SqlSession, change: sql.AlterPlacementStatement) -> BatchCommandBody:
    alter = batches.PlacementToAlter(placement=change.placement, **_named(change.patch))
    return batches.AltersPlacement(alter_placement=alter)


def _rename_placement(
    session: SqlSession, change: sql.RenamePlacementStatement
) -> BatchCommandBody:
    rename = batches.PlacementToRename(
        placement=change.placement, new_name=change.new_name, if_exists=change.if_exists
    )
    return batches.RenamesPlacement(rename_placement=rename)


def _drop_placement(session: SqlSession, change: sql.DropPlacementStatement) -> BatchCommandBody:
    drop = batches.PlacementToDrop(placement=change.placement, if_exists=change.if_exists)
    return batches.DropsPlacement(drop_placement=drop)


def _of_space(session: SqlSession, space: sql.NameInCatalog) -> dict[str, Any]:
    name = session.tablespace(space)
    return {"catalog": name.catalog, "tablespace": name.tablespace}


def _create_tablespace(
    session: SqlSession, change: sql.CreateTablespaceStatement
) -> BatchCommandBody:
    catalog = change.catalog or session.catalog
    space = batches.TablespaceToCreate(catalog=catalog, tablespace=change.spec)
    return batches.CreatesTablespace(create_tablespace=space)


def _alter_tablespace(
    session: SqlSession, change: sql.AlterTablespaceStatement
) -> BatchCommandBody:
    named = _of_space(session, change.tablespace)
    alter = batches.TablespaceToAlter(**named, **_named(change.patch))
    return batches.AltersTablespace(alter_tablespace=alter)


def _rename_tablespace(
    session: SqlSession, change: sql.RenameTablespaceStatement
) -> BatchCommandBody:
    named = _of_space(session, change.tablespace)
    rename = batches.TablespaceToRename(
        **named, new_name=change.new_name, if_exists=change.if_exists
    )
    return batches.RenamesTablespace(rename_tablespace=rename)


def _drop_tablespace(session: SqlSession, change: sql.DropTablespaceStatement) -> BatchCommandBody:
    named = _of_space(session, change.tablespace)
    drop = batches.TablespaceToDrop(**named, if_exists=change.if_exists)
    return batches.DropsTablespace(drop_tablespace=drop)


_MEMBERS: Mapping[type[Any], Callable[[SqlSession, Any], BatchCommandBody]] = {
    sql.CreateTableStatement: _create_table,
    sql.DropTableStatement: _drop_table,
    sql.RenameTableStatement: _rename_table,
    sql.AlterTableStatement: _alter_table,
    sql.CreateSchemaStatement: _create_schema,
    sql.DropSchemaStatement: _drop_schema,
    sql.CreateCatalogStatement: _create_catalog,
    sql.DropCatalogStatement: _drop_catalog,
    sql.CreatePlacementStatement: _create_placement,
    sql.AlterPlacementStatement: _alter_placement,
    sql.RenamePlacementStatement: _rename_placement,
    sql.DropPlacementStatement: _drop_placement,
    sql.CreateTablespaceStatement: _create_tablespace,
    sql.AlterTablespaceStatement: _alter_tablespace,
    sql.RenameTablespaceStatement: _rename_tablespace,
    sql.DropTablespaceStatement: _drop_tablespace,
}
