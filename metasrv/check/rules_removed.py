"""Rules about dropped tables and ids: dropped keys stay apart, and no id is used again."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, cast

from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.cluster import SequenceKey
from keys.model.log import (
    CatalogCreated,
    CatalogUpdateKey,
    PlacementCreated,
    SchemaCreated,
    TableCreated,
    TablespaceCreated,
)
from keys.model.placing.placements import PlacementKey
from keys.model.placing.tablespaces import TablespaceKey
from keys.model.removed import (
    RemovedTableInfo,
    RemovedTableInfoKey,
    RemovedTableNameKey,
    RemovedTableRoute,
    RemovedTableRouteKey,
)
from keys.model.snapshot.snapshots import (
    CatalogItem,
    PlacementItem,
    SchemaItem,
    SnapshotPartKey,
    TableItem,
    TablespaceItem,
)
from keys.model.tables import TableInfoKey, TableRouteKey
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule


def removed_infos(facts: CheckInput) -> dict[int, RemovedTableInfo]:
    values = facts.of(RemovedTableInfoKey).items()
    return {cast("RemovedTableInfoKey", key).table_id: value for key, value in values}


def removed_routes(facts: CheckInput) -> dict[int, RemovedTableRoute]:
    values = facts.of(RemovedTableRouteKey).items()
    return {cast("RemovedTableRouteKey", key).table_id: value for key, value in values}


def _name_of(removed: RemovedTableInfo) -> RemovedTableNameKey:
    info = removed.info
    return RemovedTableNameKey(info.catalog, info.schema_name, info.name, info.table_id)


def whole(facts: CheckInput) -> Iterator[CheckFault]:
    """Undrop needs all three; a dropped table without one of them cannot come back."""
    infos, routes = removed_infos(facts), removed_routes(facts)
    names = {cast("RemovedTableNameKey", key) for key in facts.of(RemovedTableNameKey)}
    for table_id in sorted({*infos, *routes, *(name.table_id for name in names)}):
        keys: list[Key[Any]] = [RemovedTableInfoKey(table_id), RemovedTableRouteKey(table_id)]
        if table_id in infos:
            keys.append(_name_of(infos[table_id]))
        for key in keys:
            if not facts.has(key):
                yield CheckFault(
                    str(key), "missing", f"present with the other keys of dropped table {table_id}"
                )
    for name in sorted(names, key=str):
        kept = infos.get(name.table_id)
        if kept is not None and _name_of(kept) != name:
            yield CheckFault(str(name), "not the name of the dropped table", str(_name_of(kept)))
    for table_id in sorted(infos.keys() & routes.keys()):
        by_info, by_route = infos[table_id], routes[table_id]
        right = f"{by_info.dropped_by} at {by_info.dropped_at_ms}"
        actual = f"{by_route.dropped_by} at {by_route.dropped_at_ms}"
        if actual != right:
            yield CheckFault(str(RemovedTableRouteKey(table_id)), f"dropped by {actual}", right)


def living_too(facts: CheckInput) -> Iterator[CheckFault]:
    infos = removed_infos(facts)
    for table_id in sorted({*infos, *removed_routes(facts)}):
        if not (facts.has(TableInfoKey(table_id)) or facts.has(TableRouteKey(table_id))):
            continue
        keys: list[Key[Any]] = [RemovedTableInfoKey(table_id), RemovedTableRouteKey(table_id)]
        keys += [_name_of(infos[table_id])] if table_id in infos else []
        for key in keys:
            if facts.has(key):
                yield CheckFault(
                    str(key),
                    f"table {table_id} is both dropped and living",
                    "either dropped or living",
                )


def below_sequence(facts: CheckInput) -> Iterator[CheckFault]:
    """An id at or above the sequence would be assigned again."""
    created = _created(facts)
    used = {
        "table_id": {*facts.infos(), *removed_infos(facts), *created["table_id"]},
        "schema_id": {
            *(info.schema_id for info in facts.of(SchemaNameKey).values()),
            *created["schema_id"],
        },
        "catalog_id": {
            *(info.catalog_id for info in facts.of(CatalogNameKey).values()),
            *created["catalog_id"],
            *(info.tablespace_id for info in facts.of(TablespaceKey).values()),
            *created["tablespace_id"],
        },
        "placement_id": {
            *(info.placement_id for info in facts.of(PlacementKey).values()),
            *created["placement_id"],
        },
    }
    for name, ids in used.items():
        sequence = facts.get(SequenceKey(name))
        if sequence is not None and ids and max(ids) >= sequence.next:
            state = f"next is {sequence.next}, and {max(ids)} is taken"
            yield CheckFault(str(SequenceKey(name)), state, f"above {max(ids)}")


def _created(facts: CheckInput) -> dict[str, list[int]]:
    """Every id that the oldest snapshot holds or an update of the log created, in order."""
    made = defaultdict[str, list[int]](list)
    for name, number in _held(facts):
        made[name].append(number)
    log = facts.log()
    for version in sorted(log):
        for entry in log[version].entries:
            for name, number in _ids_of(entry):
                made[name].append(number)
    return made


def _held(facts: CheckInput) -> Iterator[tuple[str, int]]:
    """Yields the ids that the oldest snapshot holds. What was purged before it, nothing tells."""
    for item in facts.of(SnapshotPartKey).values():
        if item.version == facts.floor:
            for held in item.items:
                yield from _ids_of(held)


def _ids_of(entry: object) -> Iterator[tuple[str, int]]:
    if isinstance(entry, TableCreated | TableItem):
        yield "table_id", entry.info.table_id
    elif isinstance(entry, SchemaCreated | SchemaItem):
        yield "schema_id", entry.info.schema_id
    elif isinstance(entry, CatalogCreated | CatalogItem):
        yield "catalog_id", entry.info.catalog_id
    elif isinstance(entry, PlacementCreated | PlacementItem):
        yield "placement_id", entry.info.placement_id
    elif isinstance(entry, TablespaceCreated | TablespaceItem):
        yield "tablespace_id", entry.info.tablespace_id


def never_again(facts: CheckInput) -> Iterator[CheckFault]:
    """A reused id would direct an old order, file or cache to a new table (G7)."""
    used = set(_held(facts))
    log, floor = facts.log(), facts.floor
    for version in sorted(log):
        if version <= floor:
            continue
        for new_id in (new_id for entry in log[version].entries for new_id in _ids_of(entry)):
            if new_id in used:
                state = f"{new_id[0]} {new_id[1]} is assigned a second time"
                yield CheckFault(str(CatalogUpdateKey(version)), state, "an id that was never used")
            used.add(new_id)
    schemas = facts.of(SchemaNameKey)
    uses = Counter(info.schema_id for info in schemas.values())
    for key, info in schemas.items():
        if uses[info.schema_id] > 1:
            state = f"schema id {info.schema_id}, as another schema has"
            yield CheckFault(str(key), state, "an id of its own")


def removed_regions(facts: CheckInput) -> Iterator[CheckFault]:
    """A dropped table keeps its claim on its folders, so that it can come back."""
    living = {r.root: r.region_id for table in facts.routes().values() for r in table.region_routes}
    for table_id, removed in removed_routes(facts).items():
        for region in removed.route.region_routes:
            other = living.get(region.root)
            if other is not None and other != region.region_id:
                state = f"{region.root} is the root of region {other} too"
                yield CheckFault(
                    str(RemovedTableRouteKey(table_id)), state, "claimed by one of them"
                )


RULES = (
    CheckRule("removed-whole", 2, "info, route and name of a dropped table exist together", whole),
    CheckRule("removed-living", 2, "no table is both dropped and living", living_too),
    CheckRule(
        "removed-roots", 6, "no living region uses a folder of a dropped table", removed_regions
    ),
    CheckRule("id-sequence", 2, "every used id is below its sequence", below_sequence),
    CheckRule("id-once", 2, "no id is used twice", never_again),
)
