"""The undrop of an index or a column: its drop, which waits out its grace time, is cancelled."""

from keys.model.records import ProcedurePhase
from keys.model.tables import TableInfo
from metasrv.service.catalog.reading import Freshness, view
from metasrv.service.requests.ddl_request import FullTableName, must_be_identifiers, table_named
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotFound
from procedures.elements.element_targets import What
from procedures.kinds.alter.alter_table import AlterTable
from procedures.scheduling.manager import Manager


async def drop_under_way(state: ServerState, table: FullTableName, what: What, name: str) -> str:
    """Returns the procedure that drops it; a cancel of it undrops the element until the point of no
    return. Raises NotFound."""
    must_be_identifiers(name)
    with only_the_leader():
        term = await state.leading()
        catalog_view = await view(state, Freshness())
    drop = _drop_of(term.manager, table_named(catalog_view.catalog, table).info, what, name)
    if drop is None:
        raise NotFound(what=f"drop under way of {what}", name=name)
    return drop


def _drop_of(manager: Manager, info: TableInfo, what: What, name: str) -> str | None:
    """The procedure that has taken it from public, and has not ended."""
    elements = info.columns if what is What.COLUMN else info.indexes
    ids = {element.id for element in elements if element.name == name}
    for procedure, entry in manager.living():
        record = entry.held.record
        is_alter = "operations" in record.state and record.phase is ProcedurePhase.FORWARD
        if not is_alter or record.state.get("table_id") != info.table_id:
            continue
        moves = AlterTable.model_validate(record.state).moves
        if any(move.what is what and not move.adds and move.id in ids for move in moves):
            return procedure
    return None
