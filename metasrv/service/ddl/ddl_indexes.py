"""Plans create_index and drop_index, and reads indexes from the catalog."""

from collections.abc import Mapping
from functools import partial

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import Index, TableInfo
from metasrv.service.bodies.shapes import index_body
from metasrv.service.catalog.index_coverage import coverages
from metasrv.service.catalog.reading import CatalogView, Freshness, view
from metasrv.service.ddl.ddl_tables import locks_of_table, table_asked_for
from metasrv.service.nearby import hint
from metasrv.service.requests.absent import unless_absent
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlRequest,
    FullTableName,
    ProcedureToSubmit,
    RequestFacts,
    must_be_identifiers,
    table_named,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.state.state import ServerState
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import NotFound
from metasrv_base.wire.api.coverage import IndexCoverage
from metasrv_base.wire.api.table_rules import index_errors
from metasrv_base.wire.api.tables import IndexBody, IndexList, IndexSpec
from metasrv_base.wire.problem.problems import refuse
from procedures.kinds.alter.alter_operations import AddIndex, DropIndex, ValidateIndex, drafted
from procedures.kinds.alter.alter_table import AlterTable
from procedures.kinds.alter.index_kinds import CREATE_INDEX, DROP_INDEX, VALIDATE_INDEX


def create_index(context: RequestContext, name: FullTableName, spec: IndexSpec) -> DdlRequest:
    refuse(index_errors(spec))
    return DdlRequest(
        context, partial(locks_of_table, name), partial(plan_create_index, context, name, spec)
    )


def validate_index(context: RequestContext, name: FullTableName, index: str) -> DdlRequest:
    must_be_identifiers(index)
    return DdlRequest(
        context, partial(locks_of_table, name), partial(plan_validate_index, context, name, index)
    )


def drop_index(context: RequestContext, name: FullTableName, index: str) -> DdlRequest:
    must_be_identifiers(index)
    request = DdlRequest(
        context, partial(locks_of_table, name), partial(plan_drop_index, context, name, index)
    )
    exists = partial(_has_index, name, index)
    return unless_absent(request, DROP_INDEX, "index", f"{name.full}.{index}", exists)


def _has_index(name: FullTableName, index: str, catalog: Catalog) -> bool:
    table = catalog.find(name.catalog, name.schema, name.table)
    return table is not None and index in {each.name for each in table.info.indexes}


def plan_create_index(
    context: RequestContext, name: FullTableName, spec: IndexSpec, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    table = table_asked_for(context, name, facts)
    info = table.info
    operation = AddIndex(
        name=spec.name,
        columns=spec.columns,
        unique=spec.unique,
        not_valid=spec.not_valid,
        if_not_exists=spec.if_not_exists,
    )
    if not drafted(info, (operation,)).moves:
        return AlreadySatisfied(CREATE_INDEX, table, spec.name)
    return ProcedureToSubmit(CREATE_INDEX, _state(name, info, operation), info.table_id)


def plan_validate_index(
    context: RequestContext, name: FullTableName, index: str, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    table = table_asked_for(context, name, facts)
    info = table.info
    _found(info, index)
    operation = ValidateIndex(name=index)
    if not drafted(info, (operation,)).moves:
        return AlreadySatisfied(VALIDATE_INDEX, table, index)
    return ProcedureToSubmit(VALIDATE_INDEX, _state(name, info, operation), info.table_id)


def plan_drop_index(
    context: RequestContext, name: FullTableName, index: str, facts: RequestFacts
) -> ProcedureToSubmit:
    table = table_asked_for(context, name, facts)
    info = table.info
    _found(info, index)
    state = _state(name, info, DropIndex(name=index))
    state = state.model_copy(update={"grace_ms": context.grace_s * 1_000})
    return ProcedureToSubmit(DROP_INDEX, state, info.table_id)


def _state(
    name: FullTableName, info: TableInfo, operation: AddIndex | ValidateIndex | DropIndex
) -> AlterTable:
    return AlterTable(
        catalog=name.catalog,
        schema_name=name.schema,
        name=name.table,
        table_id=info.table_id,
        operations=(operation,),
    )


async def indexes(
    state: ServerState, name: FullTableName, freshness: Freshness
) -> tuple[IndexList, CatalogView]:
    catalog_view = await view(state, freshness)
    table = table_named(catalog_view.catalog, name)
    covered = await _covered(state, table)
    bodies = tuple(_body(table.info, index.name, covered) for index in table.info.indexes)
    return IndexList(indexes=bodies, catalog_version=catalog_view.catalog.version), catalog_view


async def index(
    state: ServerState, name: FullTableName, index_name: str, freshness: Freshness
) -> tuple[IndexBody, CatalogView]:
    """Raises NotFound, with what comes close."""
    must_be_identifiers(index_name)
    catalog_view = await view(state, freshness)
    table = table_named(catalog_view.catalog, name)
    _found(table.info, index_name)
    return _body(table.info, index_name, await _covered(state, table)), catalog_view


async def _covered(state: ServerState, table: CatalogTable) -> Mapping[int, IndexCoverage]:
    """The store is asked only if there is an index that may be on its way."""
    if all(index.state is not ElementState.WRITE_ONLY for index in table.info.indexes):
        return {}
    return await coverages(state, table)


def _body(info: TableInfo, name: str, covered: Mapping[int, IndexCoverage]) -> IndexBody:
    names = {column.id: column.name for column in info.columns}
    index = _found(info, name)
    return index_body(index, names).model_copy(update={"coverage": covered.get(index.id)})


def _found(info: TableInfo, name: str) -> Index:
    for index in info.indexes:
        if index.name == name:
            return index
    close = hint(name, [index.name for index in info.indexes])
    raise NotFound("not-found", what="index", name=name, **close)
