"""Rules about the four kinds of key that make a table: each is valid, and all agree."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.cluster import NodeKey
from keys.model.elements import Element, graph_of
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT_ID,
    PlacedTable,
    PlacedTableKey,
    PlacementInfo,
    PlacementKey,
)
from keys.model.placing.tablespaces import GroupedTable, GroupedTableKey, TablespaceKey
from keys.model.tables import (
    Constraint,
    DatanodeTable,
    DatanodeTableKey,
    Index,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableRouteKey,
)
from keys.value import StoredModel
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule
from metasrv_base.elements.states import ElementState
from metasrv_base.ids import TableId, region_id

DATANODE = "datanode"


def names(facts: CheckInput) -> Iterator[CheckFault]:
    infos = facts.infos()
    for key, value in facts.of(TableNameKey).items():
        info = infos.get(value.table_id)
        if info is not None and (_name(info) != key or info.dropping is not None):
            right = f"no such key: that table is {_name(info)}"
            yield CheckFault(str(key), f"table {value.table_id}", right)
        elif not _stands(facts, value.table_id):
            yield CheckFault(
                str(key), f"table {value.table_id}, which does not exist", "no such key"
            )
    for table_id, info in infos.items():
        if info.dropping is not None:
            continue
        holder = facts.get(_name(info))
        if not facts.has(_name(info)):
            yield CheckFault(str(_name(info)), "missing", f"table {table_id}, whose name it is")
        elif holder is not None and holder.table_id != table_id:
            state = f"named {info.full_name}, as table {holder.table_id} is"
            yield CheckFault(str(TableInfoKey(table_id)), state, "a name of its own")


def _stands(facts: CheckInput, table_id: int) -> bool:
    """Whether any key of a table exists; `halves` reports those that are missing."""
    return facts.has(TableInfoKey(table_id)) or facts.has(TableRouteKey(table_id))


def _name(info: TableInfo) -> TableNameKey:
    return TableNameKey(info.catalog, info.schema_name, info.name)


def halves(facts: CheckInput) -> Iterator[CheckFault]:
    for table_id in sorted({*facts.infos(), *facts.routes()}):
        info, route = TableInfoKey(table_id), TableRouteKey(table_id)
        if not facts.has(route):
            yield CheckFault(str(route), "missing", f"the route of {info}")
        if not facts.has(info):
            yield CheckFault(str(info), "missing", f"the table of {route}")


def reverse_index(facts: CheckInput) -> Iterator[CheckFault]:
    stored = {cast("DatanodeTableKey", k): v for k, v in facts.of(DatanodeTableKey).items()}
    routes = facts.routes()
    for table_id, route in routes.items():
        for node, numbers in route.numbers_by_node().items():
            key = DatanodeTableKey(node, table_id)
            right = DatanodeTable(table_id=table_id, version=route.version, regions=numbers)
            actual = stored.get(key)
            if actual is None and not facts.has(key):
                yield CheckFault(str(key), "missing", _column_text(right))
            elif actual is not None and actual != right:
                yield CheckFault(str(key), _column_text(actual), _column_text(right))
    for key, value in stored.items():
        kept = routes.get(key.table_id)
        if kept is None and _stands(facts, key.table_id):
            continue
        if kept is None or key.node not in kept.numbers_by_node():
            why = f"{TableRouteKey(key.table_id)} names no region there"
            yield CheckFault(str(key), _column_text(value), f"no such key: {why}")


def _column_text(value: DatanodeTable) -> str:
    return f"version {value.version}, regions {list(value.regions)}"


def known_nodes(facts: CheckInput) -> Iterator[CheckFault]:
    for table_id, route in facts.routes().items():
        for node in sorted(route.numbers_by_node()):
            if not facts.has(NodeKey(DATANODE, node)):
                yield CheckFault(str(TableRouteKey(table_id)), f"node {node}", "a registered node")


def region_ids(facts: CheckInput) -> Iterator[CheckFault]:
    infos = facts.infos()
    for table_id, route in facts.routes().items():
        key, info = str(TableRouteKey(table_id)), infos.get(table_id)
        actual = [region.region_id for region in route.region_routes]
        count = info.partition.regions if info else len(actual)
        right = [str(region_id(TableId(table_id), number)) for number in range(count)]
        if actual != right:
            yield CheckFault(
                key, f"regions {actual}", f"{right}, as many as the partition rule has"
            )


def epochs(facts: CheckInput) -> Iterator[CheckFault]:
    for table_id, route in facts.routes().items():
        for region in route.region_routes:
            if region.epoch < 1:
                state = f"region {region.region_id} at epoch {region.epoch}"
                yield CheckFault(str(TableRouteKey(table_id)), state, "epochs from 1")


def region_roots(facts: CheckInput) -> Iterator[CheckFault]:
    """Epochs and fences protect a folder only if a single region writes to it."""
    regions = [r for route in facts.routes().values() for r in route.region_routes]
    used = Counter(root for region in regions for root in region.roots)
    for table_id, route in facts.routes().items():
        key = str(TableRouteKey(table_id))
        for region in route.region_routes:
            for root in region.roots:
                if used[root] > 1:
                    state = f"{root} is the root of {used[root]} regions or copies"
                    yield CheckFault(key, state, "a folder for each")
            if region.root in region.borrows:
                state = f"region {region.region_id} borrows {region.root}"
                yield CheckFault(key, state, "the roots of earlier leaders, not its own")


def announcements(facts: CheckInput) -> Iterator[CheckFault]:
    for table_id, route in facts.routes().items():
        for region in route.region_routes:
            if region.state is RegionState.OPEN and not region.announced:
                state = f"region {region.region_id} is open and not announced"
                yield CheckFault(str(TableRouteKey(table_id)), state, "announced when it opens")


def schemas(facts: CheckInput) -> Iterator[CheckFault]:
    for table_id, info in facts.infos().items():
        key = SchemaNameKey(info.catalog, info.schema_name)
        if info.dropping is None and not facts.has(key):
            yield CheckFault(str(key), "missing", f"the schema of {TableInfoKey(table_id)}")
    for schema in facts.of(SchemaNameKey).values():
        if not facts.has(CatalogNameKey(schema.catalog)):
            name = f"{schema.catalog}.{schema.name}"
            yield CheckFault(
                str(CatalogNameKey(schema.catalog)), "missing", f"the catalog of {name}"
            )


def elements(facts: CheckInput) -> Iterator[CheckFault]:
    for table_id, info in facts.infos().items():
        for state, right in _own_faults(info):
            yield CheckFault(str(TableInfoKey(table_id)), state, right)


def _own_faults(info: TableInfo) -> Iterator[tuple[str, str]]:
    ids = [column.id for column in info.columns]
    column_names = [column.name for column in info.columns if column.replaced_by is None]
    if len(set(ids)) != len(ids) or len(set(column_names)) != len(column_names):
        yield f"columns {ids} named {column_names}", "each id and each name once"
    if any(column >= info.next_column_id or column < 1 for column in ids):
        yield f"columns {ids}, next {info.next_column_id}", "ids from 1, below the next"
    public = [column.id for column in info.public_columns]
    if not info.primary_key or not set(info.primary_key) <= set(public):
        yield f"primary key {list(info.primary_key)}", f"public columns, of {public}"
    if not set(info.partition.columns) <= set(info.primary_key):
        yield f"partition columns {list(info.partition.columns)}", "part of the primary key"
    if not 0 <= info.schema_floor <= info.schema_version or info.version < 1:
        state = f"floor {info.schema_floor}, schema version {info.schema_version}"
        yield f"{state}, version {info.version}", "a floor not above the version, versions from 1"


def online(facts: CheckInput) -> Iterator[CheckFault]:
    for table_id, info in facts.infos().items():
        for state, right in _online_faults(info):
            yield CheckFault(str(TableInfoKey(table_id)), state, right)


def _online_faults(info: TableInfo) -> Iterator[tuple[str, str]]:
    columns = {column.id for column in info.columns}
    named: Sequence[tuple[str, Sequence[Index | Constraint], int]] = (
        ("indexes", info.indexes, info.next_index_id),
        ("constraints", info.constraints, info.next_constraint_id),
    )
    for what, elements, following in named:
        ids = [element.id for element in elements]
        spelled = [element.name.lower() for element in elements]
        if len(set(ids)) < len(ids) or len(set(spelled)) < len(spelled):
            yield f"{what} {ids} named {spelled}", "each id and each name once"
        if not all(1 <= element_id < following for element_id in ids):
            yield f"{what} {ids}, next {following}", "ids from 1, below the next"
        for element in elements:
            if not element.columns or not set(element.columns) <= columns:
                yield (
                    f"{element.name} over {list(element.columns)}",
                    f"columns of {sorted(columns)}",
                )
    every: tuple[Element, ...] = (*info.columns, *info.indexes, *info.constraints)
    for marked in every:
        if marked.state is ElementState.ABSENT or marked.state not in graph_of(marked).behaviours:
            yield f"{marked.name} is {marked.state}", f"a state of a {graph_of(marked).name}"


def opening(facts: CheckInput) -> Iterator[CheckFault]:
    """Nothing but a procedure ever opens a region that is opening (G9)."""
    for _, region in facts.settled():
        if region.state is RegionState.OPENING:
            state = f"opening at {region.leader}, and no living procedure opens it"
            yield CheckFault(f"region {region.region_id}", state, "open, or opened by a procedure")


def leaving(facts: CheckInput) -> Iterator[CheckFault]:
    """A drop that no procedure continues would hide the object for ever, with its contents."""
    records = facts.records()
    marked = {str(key): value.dropping for key, value in facts.of(CatalogNameKey).items()}
    marked |= {str(key): value.dropping for key, value in facts.of(SchemaNameKey).items()}
    for key, procedure in marked.items():
        if procedure is not None and procedure not in records:
            state = f"being dropped by {procedure}, which is not alive"
            yield CheckFault(key, state, "dropped by a living procedure")


def lost(facts: CheckInput) -> Iterator[CheckFault]:
    """A lost region is reported, and never replaced by an empty one (P5). Another rule tells of
    those whose node is not adopted yet."""
    awaited = {key for key, node in facts.of(NodeKey).items() if node.restored_from is not None}
    for route in facts.routes().values():
        for region in route.region_routes:
            if region.state is RegionState.LOST and NodeKey(DATANODE, region.leader) not in awaited:
                subject = f"region {region.region_id}"
                yield CheckFault(subject, f"lost at {region.leader}: {region.root}", _HEAL)


_HEAL = "put its storage back and retry the failover"


def tenant_limits(facts: CheckInput) -> Iterator[CheckFault]:
    """A limit below what a catalog holds is refused, and so is a table above it."""
    tables, regions = Counter[str](), Counter[str]()
    routes = facts.routes()
    for table_id, info in facts.infos().items():
        tables[info.catalog] += 1
        if table_id in routes:
            regions[info.catalog] += len(routes[table_id].region_routes)
    for key, tenant in facts.of(CatalogNameKey).items():
        for what, count, limit in (
            ("tables", tables[tenant.name], tenant.own_limits.tables),
            ("regions", regions[tenant.name], tenant.own_limits.regions),
        ):
            if limit is not None and count > limit:
                yield CheckFault(str(key), f"{count} {what}", f"at most {limit}")


def used_objects(facts: CheckInput) -> Iterator[CheckFault]:
    """A table whose placement is gone would be kept by the rules of another one."""
    placements, spaces = _placements(facts), _spaces(facts)
    for table_id, info in facts.infos().items():
        key = str(TableInfoKey(table_id))
        if info.dropping is None and (fault := _missing(info, placements, spaces)) is not None:
            yield CheckFault(key, *fault)


def uses_index(facts: CheckInput) -> Iterator[CheckFault]:
    """A drop trusts these keys: without one it takes the placement from under a table."""
    placements, spaces = _placements(facts), _spaces(facts)
    right_uses: dict[Key[Any], StoredModel] = {}
    for info in facts.infos().values():
        if info.dropping is None and _missing(info, placements, spaces) is None:
            right_uses |= _uses(info)
    stored: dict[Key[Any], StoredModel] = {
        **facts.of(PlacedTableKey),
        **facts.of(GroupedTableKey),
    }
    for key, value in right_uses.items():
        if not facts.has(key):
            yield CheckFault(str(key), "missing", f"the use of it by {_table_of(value)}")
        elif key in stored and stored[key] != value:
            yield CheckFault(str(key), f"{stored[key]}", f"{value}")
    for key in stored.keys() - right_uses.keys():
        yield CheckFault(str(key), "no table uses it so", "no such key")


def _placements(facts: CheckInput) -> dict[int, PlacementInfo]:
    return {info.placement_id: info for info in facts.of(PlacementKey).values()}


def _spaces(facts: CheckInput) -> dict[int, str]:
    """Tablespace -> its catalog."""
    return {info.tablespace_id: info.catalog for info in facts.of(TablespaceKey).values()}


def _missing(
    info: TableInfo, placements: dict[int, PlacementInfo], spaces: dict[int, str]
) -> tuple[str, str] | None:
    """An object that the table uses and that does not exist, and what is right."""
    placement = placements.get(info.placement_id or DEFAULT_PLACEMENT_ID)
    if info.placement_id is not None and placement is None:
        return f"placement {info.placement_id}", "a placement that exists"
    profile = info.storage_profile
    if placement is not None and profile is not None and placement.profile(profile) is None:
        return f"storage profile {profile}", f"a profile of placement {placement.name}"
    if info.tablespace_id is not None and spaces.get(info.tablespace_id) != info.catalog:
        return f"tablespace {info.tablespace_id}", f"a tablespace of {info.catalog}"
    return None


def _uses(info: TableInfo) -> dict[Key[Any], StoredModel]:
    uses: dict[Key[Any], StoredModel] = {}
    placement_id, profile, table_id = info.placement_id, info.storage_profile, info.table_id
    if placement_id is not None or profile is not None:
        key = PlacedTableKey(placement_id or DEFAULT_PLACEMENT_ID, table_id)
        uses[key] = PlacedTable(table_id=table_id, storage_profile=profile)
    if info.tablespace_id is not None:
        grouped = GroupedTableKey(info.tablespace_id, table_id)
        uses[grouped] = GroupedTable(table_id=table_id)
    return uses


def _table_of(value: StoredModel) -> str:
    assert isinstance(value, PlacedTable | GroupedTable)
    return f"table {value.table_id}"


RULES = (
    CheckRule("table-name", 2, "TableName and TableInfo refer to each other, one to one", names),
    CheckRule("table-whole", 2, "TableInfo and TableRoute exist together", halves),
    CheckRule(
        "table-reverse", 2, "DatanodeTable is the reverse index of TableRoute", reverse_index
    ),
    CheckRule("route-nodes", 2, "a route names registered nodes", known_nodes),
    CheckRule(
        "region-ids", 2, "region ids are dense, and as many as the partition rule has", region_ids
    ),
    CheckRule("region-epoch", 6, "every epoch is at least 1", epochs),
    CheckRule("region-root", 6, "no two regions share a root", region_roots),
    CheckRule("region-announced", 6, "every open region has been announced", announcements),
    CheckRule(
        "table-schema", 2, "the schema of a table and the catalog of a schema exist", schemas
    ),
    CheckRule(
        "table-placing",
        2,
        "placement, storage profile and tablespace of a table exist",
        used_objects,
    ),
    CheckRule(
        "placing-reverse",
        2,
        "placements and tablespaces have a key for each table that uses them",
        uses_index,
    ),
    CheckRule(
        "table-elements", 5, "columns, keys, partition rule and versions of a table agree", elements
    ),
    CheckRule("table-online", 5, "ids of elements are unique, and their states are legal", online),
    CheckRule("region-opening", 1, "every opening region has a procedure that opens it", opening),
    CheckRule(
        "drop-unfinished",
        1,
        "every catalog and schema being dropped has a procedure that drops it",
        leaving,
    ),
    CheckRule("region-lost", 6, "no region is lost", lost),
    CheckRule(
        "tenant-limits",
        2,
        "no catalog has more tables or regions than its limits",
        tenant_limits,
    ),
)
