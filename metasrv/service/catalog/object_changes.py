"""The changes that updates of the log made, object by object: the catalog before them against
that after them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model import log
from keys.model.catalogs import CatalogInfo
from keys.model.log import CatalogUpdate
from keys.model.tables import TableInfo
from keys.value import StoredPart
from metasrv.service.catalog.change_text import text_of
from metasrv.service.catalog.placing_changes import placing_changes, placing_names
from metasrv.service.catalog.table_diff import difference
from metasrv_base.wire.api.procedures import ResourceBody
from metasrv_base.wire.api.versions import (
    AlteredCatalog,
    CatalogOperation,
    ChangedObject,
    CreatedObject,
    DroppedObject,
    MovedRegions,
    PurgedTable,
    RenamedTable,
    UndroppedTable,
)

SchemaName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Touched:
    """Objects that entries of the log name, in their order."""

    catalogs: tuple[str, ...]
    schemas: tuple[SchemaName, ...]
    tables: tuple[int, ...]
    others: tuple[str, ...] = ()
    """Full names of placements and tablespaces."""


def touched(updates: Sequence[CatalogUpdate]) -> Touched:
    catalogs: dict[str, None] = {}
    schemas: dict[SchemaName, None] = {}
    tables: dict[int, None] = {}
    for entry in (entry for update in updates for entry in update.entries):
        match entry:
            case log.CatalogCreated() | log.CatalogAltered() | log.CatalogDropping():
                catalogs[entry.info.name] = None
            case log.CatalogDropped():
                catalogs[entry.name] = None
            case log.SchemaCreated() | log.SchemaDropping():
                schemas[entry.info.catalog, entry.info.name] = None
            case log.SchemaDropped():
                schemas[entry.catalog, entry.name] = None
            case log.TablesExchanged():
                tables |= {entry.first.table_id: None, entry.second.table_id: None}
            case (
                log.TableDropped()
                | log.TablePurged()
                | log.RouteChanged()
                | log.DroppedRouteChanged()
            ):
                tables[entry.table_id] = None
            case _ if isinstance(entry, log.PlacingEntry):
                continue
            case _:
                tables[entry.info.table_id] = None
    others = tuple(dict.fromkeys(placing_names(updates)))
    return Touched(tuple(catalogs), tuple(schemas), tuple(tables), others)


def named(objects: Touched, before: Catalog, after: Catalog) -> Iterator[tuple[str | None, str]]:
    """Yields the id of each table, and None for another object, with a full name that it bore."""
    yield from ((None, name) for name in objects.catalogs)
    yield from ((None, ".".join(name)) for name in objects.schemas)
    yield from ((None, name) for name in objects.others)
    for table_id in objects.tables:
        for table in (before.tables.get(table_id), after.tables.get(table_id)):
            if table is not None:
                yield str(table_id), table.info.full_name


def object_changes(
    updates: Sequence[CatalogUpdate], before: Catalog, after: Catalog
) -> Iterator[ChangedObject]:
    """Yields what is different in *after*, of the objects that *updates* name: catalogs, schemas,
    placements, tablespaces, tables. *before*: at the version before the first of the updates;
    *after*: at the last.
    """
    objects = touched(updates)
    for name in objects.catalogs:
        had, has = before.catalogs.get(name), after.catalogs.get(name)
        if (info := has or had) is not None and (had is None) != (has is None):
            verb = "drop_catalog" if has is None else "create_catalog"
            yield _of_namespace("catalog", info.catalog_id, name, verb)
        elif had is not None and has is not None and had != has:
            yield _altered_catalog(had, has)
    for key in objects.schemas:
        old, new = before.schemas.get(key), after.schemas.get(key)
        if (schema := new or old) is not None and (old is None) != (new is None):
            verb = "drop_schema" if new is None else "create_schema"
            yield _of_namespace("schema", schema.schema_id, ".".join(key), verb)
    yield from placing_changes(updates, before, after)
    for table_id in objects.tables:
        yield from _of_table(updates, before.tables.get(table_id), after.tables.get(table_id))


def _of_namespace(what: str, id: int, name: str, op: str) -> ChangedObject:
    resource = ResourceBody(type=what, id=str(id), name=name)
    operation = DroppedObject if op.startswith("drop") else CreatedObject
    made = operation.model_validate({"op": op})
    return ChangedObject(resource=resource, operation=made, text=text_of(name, made))


def _altered_catalog(before: CatalogInfo, after: CatalogInfo) -> ChangedObject:
    operation = AlteredCatalog(
        op="alter_catalog",
        settings=_different(before.own_settings, after.own_settings),
        limits=_different(before.own_limits, after.own_limits),
    )
    resource = ResourceBody(type="catalog", id=str(after.catalog_id), name=after.name)
    return ChangedObject(
        resource=resource, operation=operation, text=text_of(after.name, operation)
    )


def _different(before: StoredPart, after: StoredPart) -> dict[str, Any]:
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {name: value for name, value in new.items() if value != old[name]}


def _of_table(
    updates: Sequence[CatalogUpdate], before: CatalogTable | None, after: CatalogTable | None
) -> Iterator[ChangedObject]:
    table = before or after
    if table is None:
        return
    info = table.info
    resource = ResourceBody(type="table", id=str(info.table_id), name=info.full_name)
    for operation in _operations(updates, before, after):
        text = text_of(info.full_name, operation)
        yield ChangedObject(resource=resource, operation=operation, text=text)


def _operations(
    updates: Sequence[CatalogUpdate], before: CatalogTable | None, after: CatalogTable | None
) -> Iterator[CatalogOperation]:
    had, has = _stands(before), _stands(after)
    if before is not None and after is None:
        yield PurgedTable(op="purge_table")
    elif had and not has:
        yield DroppedObject(op="drop_table")
    elif has and not had:
        if before is None:
            yield CreatedObject(op="create_table")
        else:
            yield UndroppedTable(op="undrop_table")
    if before is not None and after is not None:
        yield from _altered(before.info, after.info)
        if had == has:
            yield from _moved(updates, after.info.table_id)


def _stands(table: CatalogTable | None) -> bool:
    return table is not None and table.dropped_at_ms is None and not table.info.is_hidden


def _altered(before: TableInfo, after: TableInfo) -> Iterator[CatalogOperation]:
    if before.full_name != after.full_name:
        yield RenamedTable(op="rename_table", new_name=after.full_name)
    different = difference(before, after)
    yield from different.alter
    yield from different.indexes


def _moved(updates: Sequence[CatalogUpdate], table_id: int) -> Iterator[MovedRegions]:
    regions = {
        region.number
        for update in updates
        for entry in update.entries
        if isinstance(entry, log.RouteChanged | log.DroppedRouteChanged)
        and entry.table_id == table_id
        for region in entry.regions
    }
    if regions:
        yield MovedRegions(op="move_regions", regions=tuple(sorted(regions)))
