"""create_index and drop_index, judged and planned; indexes as the catalog has them."""

from functools import partial

from base.errors import NotFound
from base.wire.problems import refuse
from base.wire.table_rules import validate_index
from base.wire.tables import IndexBody, IndexList, IndexSpec
from keys.tables import Index, TableInfo
from metasrv.service.asking import Asked
from metasrv.service.ddl_tables import table_asked_for, wants_table
from metasrv.service.nearby import hint
from metasrv.service.reading import Freshness, View, view
from metasrv.service.shapes import index_body
from metasrv.service.state import ServerState
from metasrv.service.wishes import Change, Facts, TableName, Wish, must_be_identifiers, table_named
from procedures.kinds.alter_operations import AddIndex, DropIndex, drafted
from procedures.kinds.alter_table import AlterTable
from procedures.kinds.index_kinds import CREATE_INDEX, DROP_INDEX


def create_index(asked: Asked, name: TableName, spec: IndexSpec) -> Wish:
    refuse(validate_index(spec))
    return Wish(asked, partial(wants_table, name), partial(plan_create_index, asked, name, spec))


def drop_index(asked: Asked, name: TableName, index: str) -> Wish:
    must_be_identifiers(index)
    return Wish(asked, partial(wants_table, name), partial(plan_drop_index, asked, name, index))


def plan_create_index(asked: Asked, name: TableName, spec: IndexSpec, facts: Facts) -> Change:
    info = table_asked_for(asked, name, facts).info
    operation = AddIndex(name=spec.name, columns=spec.columns, unique=spec.unique)
    drafted(info, (operation,))
    return Change(CREATE_INDEX, _state(name, info, operation), info.table_id)


def plan_drop_index(asked: Asked, name: TableName, index: str, facts: Facts) -> Change:
    info = table_asked_for(asked, name, facts).info
    _found(info, index)
    operation = DropIndex(name=index)
    return Change(DROP_INDEX, _state(name, info, operation), info.table_id)


def _state(name: TableName, info: TableInfo, operation: AddIndex | DropIndex) -> AlterTable:
    return AlterTable(
        catalog=name.catalog,
        schema_name=name.schema,
        name=name.table,
        table_id=info.table_id,
        operations=(operation,),
    )


async def indexes(
    state: ServerState, name: TableName, freshness: Freshness
) -> tuple[IndexList, View]:
    found = await view(state, freshness)
    info = table_named(found.catalog, name).info
    bodies = tuple(_body(info, index.name) for index in info.indexes)
    return IndexList(indexes=bodies, catalog_version=found.catalog.version), found


async def index(
    state: ServerState, name: TableName, wanted: str, freshness: Freshness
) -> tuple[IndexBody, View]:
    """Raises NotFound, with what comes close."""
    must_be_identifiers(wanted)
    found = await view(state, freshness)
    return _body(table_named(found.catalog, name).info, wanted), found


def _body(info: TableInfo, name: str) -> IndexBody:
    names = {column.id: column.name for column in info.columns}
    return index_body(_found(info, name), names)


def _found(info: TableInfo, name: str) -> Index:
    for one in info.indexes:
        if one.name == name:
            return one
    close = hint(name, [one.name for one in info.indexes])
    raise NotFound("not-found", what="index", name=name, **close)
