"""Commands by which a table goes: hidden, shown again, dropped, purged."""

from dataclasses import dataclass
from typing import Any

from keys.commit.entry_writes import MetadataView
from keys.key import Key
from keys.model.log import Entry, TableAltered, TableDropped, TablePurged
from keys.model.records import ClientRequirements
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.tables import TableInfo, TableInfoKey, TableNameKey, TableRouteKey
from metasrv_base.elements.graphs import TABLE
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import NotFound
from procedures.commands.command import CatalogCommand
from procedures.steps.requirements import require_same_table, require_version


@dataclass(frozen=True, slots=True)
class HideTableCommand(CatalogCommand):
    """The first transaction of a drop: new statements do not find the table."""

    name: TableNameKey
    table_id: int
    client: ClientRequirements

    def keys(self) -> tuple[Key[Any], ...]:
        return (TableInfoKey(self.table_id), self.name)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        require_same_table(self.client, self.name, view.get(self.name))
        info = _must(view, self.table_id)
        require_version(self.client, info)
        return (TableAltered(info=_in_state(info, TABLE.after(info.state, TABLE.drop))),)


@dataclass(frozen=True, slots=True)
class ShowTableCommand(CatalogCommand):
    """Makes a hidden table visible again, at the schema version that it had: no holder could use
    another one."""

    table_id: int

    def keys(self) -> tuple[Key[Any], ...]:
        return (TableInfoKey(self.table_id),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = view.get(TableInfoKey(self.table_id))
        if info is None or not info.is_hidden:
            return ()
        return (TableAltered(info=_in_state(info, ElementState.PUBLIC)),)


@dataclass(frozen=True, slots=True)
class DropTableCommand(CatalogCommand):
    """The keys of a table move below `__removed-`."""

    name: TableNameKey
    table_id: int
    at_ms: int
    """Time of the drop, wall clock."""
    by: str
    """Id of the procedure."""
    freed: bool = False
    """A batch has dropped it: it bears the name no more."""

    def keys(self) -> tuple[Key[Any], ...]:
        name, table_id = self.name, self.table_id
        removed = RemovedTableNameKey(name.catalog, name.schema, name.table, table_id)
        return (
            TableInfoKey(table_id),
            TableRouteKey(table_id),
            *(() if self.freed else (name,)),
            RemovedTableInfoKey(table_id),
            RemovedTableRouteKey(table_id),
            removed,
        )

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        _must(view, self.table_id)
        at_ms, by = self.at_ms, self.by
        return (TableDropped(table_id=self.table_id, dropped_at_ms=at_ms, dropped_by=by),)


@dataclass(frozen=True, slots=True)
class PurgeTableCommand(CatalogCommand):
    """The keys of a dropped table go."""

    removed: RemovedTableNameKey
    dropped_by: str
    """The drop to purge, by its procedure: a table that was undropped and dropped again is kept."""

    def keys(self) -> tuple[Key[Any], ...]:
        table_id = self.removed.table_id
        return (RemovedTableInfoKey(table_id), RemovedTableRouteKey(table_id), self.removed)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        """Raises NotFound for a table that is not there any more, or was dropped by another
        drop."""
        table_id = self.removed.table_id
        removed = view.get(RemovedTableInfoKey(table_id))
        if removed is None or removed.dropped_by != self.dropped_by:
            raise NotFound("table-not-found", table_id=table_id)
        return (TablePurged(table_id=table_id),)


def _must(view: MetadataView, table_id: int) -> TableInfo:
    info = view.get(TableInfoKey(table_id))
    if info is None:
        raise NotFound("table-not-found", table_id=table_id)
    return info


def _in_state(info: TableInfo, state: ElementState) -> TableInfo:
    return info.model_copy(update={"state": state, "version": info.version + 1})
