"""purge_table: deletes the keys and files of a dropped table, once its retention is over.

The keys go first, so that no undrop can open its regions any more; then their folders, by orders
to the nodes that led them.
"""

from typing import Self

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.records import Lock, Resource
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.tables import TableInfo, TableRoute
from procedures.commands.command import change_of
from procedures.commands.drop_commands import PurgeTableCommand
from procedures.context import Context
from procedures.locking.locks import exclusive, route_key, table_key
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.copies.copy_orders import delete_copies, drop_copy, targets_of
from procedures.steps.region_cleanup import delete_roots, rounds
from procedures.steps.region_orders import drop_order


class PurgeTable(ProcedureState):
    table_id: int
    catalog: str
    schema_name: str
    name: str
    """Name when it was dropped."""
    dropped_by: str
    """The drop to purge, by its procedure: a table that was undropped and dropped again is kept."""
    info: TableInfo | None = None
    """Definition of the table, kept for `delete`: its keys are gone by then."""
    route: TableRoute | None = None

    @classmethod
    def of(cls, table: CatalogTable) -> Self:
        """The purge of a table that the catalog holds as dropped."""
        assert table.dropped_by is not None
        info = table.info
        return cls(
            table_id=info.table_id,
            catalog=info.catalog,
            schema_name=info.schema_name,
            name=info.name,
            dropped_by=table.dropped_by,
        )


async def forget(state: PurgeTable, context: Context) -> Outcome[PurgeTable]:
    """Deletes the keys of the table. Raises NotFound if they are gone, or are of another drop."""
    table_id = state.table_id
    name = RemovedTableNameKey(state.catalog, state.schema_name, state.name, table_id)
    command = PurgeTableCommand(name, state.dropped_by)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    info = snapshot.must(RemovedTableInfoKey(table_id)).info
    route = snapshot.must(RemovedTableRouteKey(table_id)).route
    return Goto("delete", state.model_copy(update={"info": info, "route": route}), txn)


async def delete(state: PurgeTable, context: Context) -> Outcome[PurgeTable]:
    """Orders the nodes to delete the folders. A folder whose node is away, or refuses to delete it,
    stays and is reported, since only that node can reach its disk."""
    assert state.info is not None
    assert state.route is not None
    left: list[str] = []
    done = 0
    regions = state.route.region_routes
    total = sum(len(region.roots) + len(region.borrows) for region in regions)
    copies = [target for target in targets_of(state.info, regions) if not target.is_leader]
    left += await delete_copies(context, copies, drop_copy)
    done += len(copies)
    for claims in rounds(
        regions, {region.region_id: (region.root, *region.borrows) for region in regions}
    ):
        left += await delete_roots(context, state.info, claims, drop_order)
        done += len(claims)
        context.progress(done, total, "folders")
    result = {"table_id": state.table_id, "name": state.info.full_name, "left_behind": left}
    return Done(state, result)


def locks(state: PurgeTable) -> tuple[Lock, ...]:
    """Returns the locks of table and route, not of the name, which another table may have by
    now."""
    return (exclusive(table_key(state.table_id)), exclusive(route_key(state.table_id)))


def resource(state: PurgeTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


PURGE_TABLE = Kind(
    name="purge_table",
    state=PurgeTable,
    steps={
        "forget": Step(forget, to=frozenset({"delete"})),
        "delete": Step(delete, waits=True),
    },
    no_return="forget",
    locks=locks,
    resource=resource,
    success=204,
)
