"""POST /v1/purges: a dropped table is deleted for good, before its retention is over."""

from functools import partial

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.records import Lock
from metasrv.service.ddl.ddl_tables import dropped_table
from metasrv.service.requests.ddl_request import (
    DdlRequest,
    FullTableName,
    ProcedureToSubmit,
    RequestFacts,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import NotFound
from metasrv_base.wire.api.changes import PurgeRequest
from metasrv_base.wire.problem.problems import FieldError, refuse
from procedures.kinds.tables.purge_table import PURGE_TABLE, PurgeTable
from procedures.locking.locks import exclusive, table_key


def purge_table(context: RequestContext, request: PurgeRequest) -> DdlRequest:
    """Raises Refused for a name that is none."""
    parts = request.table.split(".") if request.table is not None else []
    if request.table_id is None and len(parts) != 3:
        detail = "a table_id, or the full name of the table: catalog.schema.table"
        refuse((FieldError(pointer="/table", detail=detail),))
    name = FullTableName(*parts) if len(parts) == 3 else None

    def locks(catalog: Catalog) -> tuple[Lock, ...]:
        tables = _dropped(catalog, request.table_id, name)
        return tuple(exclusive(table_key(table.info.table_id)) for table in tables)

    return DdlRequest(context, locks, partial(_plan, request.table_id, name))


def _dropped(
    catalog: Catalog, table_id: int | None, name: FullTableName | None
) -> list[CatalogTable]:
    if name is not None:
        return list(catalog.dropped(name.catalog, name.schema, name.table))
    table = None if table_id is None else catalog.tables.get(table_id)
    return [] if table is None or table.dropped_at_ms is None else [table]


def _plan(
    table_id: int | None, name: FullTableName | None, facts: RequestFacts
) -> ProcedureToSubmit:
    """Raises NotFound; Conflict("ambiguous-dropped-table")."""
    if name is not None:
        table = dropped_table(name, table_id, facts.catalog)
    else:
        tables = _dropped(facts.catalog, table_id, name)
        if not tables:
            raise NotFound("table-not-found", name=f"{table_id} among the dropped ones")
        table = tables[0]
    return ProcedureToSubmit(PURGE_TABLE, PurgeTable.of(table), table.info.table_id)
