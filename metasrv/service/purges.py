"""POST /v1/purges: a dropped table is deleted for good, before its retention is over."""

from functools import partial

from base.errors import NotFound
from base.wire.changes import PurgeRequest
from base.wire.problems import FieldError, refuse
from keys.catalog import Catalog, Table
from keys.records import Lock
from metasrv.service.asking import Asked
from metasrv.service.ddl_tables import dropped_table
from metasrv.service.wishes import Change, Facts, TableName, Wish
from procedures.kinds.purge_table import PURGE_TABLE, PurgeTable
from procedures.locks import exclusive, table_key


def purge_table(asked: Asked, request: PurgeRequest) -> Wish:
    """Raises Refused for a name that is none."""
    parts = request.table.split(".") if request.table is not None else []
    if request.table_id is None and len(parts) != 3:
        detail = "a table_id, or the full name of the table: catalog.schema.table"
        refuse((FieldError(pointer="/table", detail=detail),))
    name = TableName(*parts) if len(parts) == 3 else None

    def wants(catalog: Catalog) -> tuple[Lock, ...]:
        found = _dropped(catalog, request.table_id, name)
        return tuple(exclusive(table_key(one.info.table_id)) for one in found)

    return Wish(asked, wants, partial(_plan, request.table_id, name))


def _dropped(catalog: Catalog, table_id: int | None, name: TableName | None) -> list[Table]:
    if name is not None:
        return list(catalog.dropped(name.catalog, name.schema, name.table))
    found = None if table_id is None else catalog.tables.get(table_id)
    return [] if found is None or found.dropped_at_ms is None else [found]


def _plan(table_id: int | None, name: TableName | None, facts: Facts) -> Change:
    """Raises NotFound; Conflict("ambiguous-dropped-table")."""
    if name is not None:
        table = dropped_table(name, table_id, facts.catalog)
    else:
        found = _dropped(facts.catalog, table_id, name)
        if not found:
            raise NotFound("table-not-found", name=f"{table_id} among the dropped ones")
        table = found[0]
    return Change(PURGE_TABLE, PurgeTable.of(table), table.info.table_id)
