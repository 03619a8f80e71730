"""Stored tables, routes and schemas as the wire shows them. Pure."""

from collections.abc import Mapping
from typing import Any, get_args
from zlib import crc32

from keys.catalog.catalog import Catalog
from keys.catalog.maps import NOTHING
from keys.catalog.parts.placing import Placing
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.tables import (
    Column,
    Constraint,
    CopyRole,
    Index,
    OwnCopies,
    RegionCopy,
    RegionRoute,
    RegionState,
    TableInfo,
    TableRoute,
)
from metasrv_base.expressions.text import restored, text_of
from metasrv_base.schema.instants import instant_text
from metasrv_base.wire.api.table_rules import partition_of
from metasrv_base.wire.api.tables import (
    CatalogBody,
    ColumnBody,
    ConstraintBody,
    IndexBody,
    RegionCopyBody,
    RegionLocation,
    RegionRouteBody,
    RouteBody,
    SchemaBody,
    TableBody,
    TableDefinition,
    TableSummary,
)
from metasrv_base.wire.api.tenants import TenantLimits, TenantSettings, TenantUsage
from procedures.quorum import min_in_sync

Addresses = Mapping[str, str]
COPY_NUMBERS: tuple[OwnCopies, ...] = get_args(OwnCopies)


def table_etag(table_id: int, version: int) -> str:
    """The ETag of the table as defined: another table that later bears its name never has it.

    The regions' places have an ETag of their own, at `T/route`.
    """
    return f'"t{table_id}-{version}"'


def dropped_etag(table_id: int, version: int) -> str:
    """The ETag of a dropped table: the drop makes no new version of the table, but another
    answer."""
    return f'"t{table_id}-{version}.dropped"'


def route_etag(route: RouteBody) -> str:
    """The ETag of version and addresses: a node that moves to another port changes no route."""
    addresses = "\n".join(region.address or "" for region in route.regions)
    return f'"r{route.version}-{crc32(addresses.encode()):08x}"'


def time_of(wall_ms: int) -> str:
    return instant_text(wall_ms, "ms")


def table_body(
    table: CatalogTable, catalog_version: int, addresses: Addresses, placing: Placing
) -> TableBody:
    """Returns the body of a table. *placing* is that of the catalog that the table is read from; it
    has the names."""
    return TableBody(
        **_defined(table.info, placing),
        catalog_version=catalog_version,
        dropped_at=_time_or_none(table.dropped_at_ms),
        regions=regions_body(table.route, addresses),
    )


def table_definition(info: TableInfo, placing: Placing) -> TableDefinition:
    """Returns the definition of a table. *placing* is as for `table_body`."""
    return TableDefinition(**_defined(info, placing))


def _defined(info: TableInfo, placing: Placing) -> dict[str, Any]:
    kept_in = placing.names_of(info)
    names = {column.id: column.name for column in info.columns}
    return {
        "id": info.table_id,
        "catalog": info.catalog,
        "schema_name": info.schema_name,
        "name": info.name,
        "columns": tuple(column_body(column) for column in info.columns),
        "indexes": tuple(index_body(index, names) for index in info.indexes),
        "constraints": tuple(constraint_body(each, names) for each in info.constraints),
        "primary_key": tuple(names[column] for column in info.primary_key),
        "partition": partition_of(info.partition, names),
        "replicas": info.replicas,
        "min_in_sync": min_in_sync(info),
        "inherited": tuple(each for each in COPY_NUMBERS if each not in info.own_copies),
        "options": info.options,
        "colocation_columns": tuple(names[column] for column in info.colocation) or None,
        "placement": None if info.placement_id is None else kept_in.placement,
        "storage_profile": info.storage_profile,
        "tablespace": None if info.tablespace_id is None else kept_in.tablespace,
        "engine": info.engine,
        "engine_options": info.engine_options,
        "version": info.version,
        "schema_version": info.schema_version,
        "created_at": time_of(info.created_at_ms),
    }


def column_body(column: Column) -> ColumnBody:
    return ColumnBody(
        id=column.id,
        name=column.name,
        type=column.type,
        nullable=column.nullable,
        default=column.default,
        origin_default=column.origin_default,
        replaces=column.replaces,
        state=column.state,
    )


def index_body(index: Index, names: Mapping[int, str]) -> IndexBody:
    return IndexBody(
        id=index.id,
        name=index.name,
        columns=tuple(names[column] for column in index.columns),
        unique=index.unique,
        state=index.state,
    )


def shown_check(constraint: Constraint, names: Mapping[int, str]) -> str | None:
    """The condition of a check with the names that columns bear now."""
    if constraint.expression is None:
        return None
    return text_of(restored(constraint.expression), lambda id: names[id])


def constraint_body(constraint: Constraint, names: Mapping[int, str]) -> ConstraintBody:
    return ConstraintBody(
        id=constraint.id,
        name=constraint.name,
        kind=constraint.kind.value,
        columns=tuple(names[column] for column in constraint.columns),
        expression=shown_check(constraint, names),
        holds=constraint.holds,
        state=constraint.state,
    )


def regions_body(route: TableRoute, addresses: Addresses) -> tuple[RegionRouteBody, ...]:
    return tuple(region_body(region, addresses) for region in route.region_routes)


def region_body(region: RegionRoute, addresses: Addresses) -> RegionRouteBody:
    is_lost = region.state is RegionState.LOST
    in_sync = [copy.node for copy in region.copies if copy.role is CopyRole.IN_SYNC]
    return RegionRouteBody(
        **_placed(region),
        address=None if is_lost else addresses.get(region.leader),
        copy_addresses={node: addresses[node] for node in in_sync if node in addresses},
    )


def region_location(region: RegionRoute) -> RegionLocation:
    return RegionLocation(**_placed(region))


def copy_body(copy: RegionCopy, epoch: int) -> RegionCopyBody:
    """The body of a copy of a region at *epoch*."""
    eligible = copy.eligible_epoch == epoch
    return RegionCopyBody(node=copy.node, root=copy.root, role=copy.role.value, eligible=eligible)


def _placed(region: RegionRoute) -> dict[str, Any]:
    return {
        "region_id": region.region_id,
        "number": region.number,
        "leader": None if region.state is RegionState.LOST else region.leader,
        "followers": region.other_nodes,
        "copies": tuple(copy_body(copy, region.epoch) for copy in region.copies),
        "epoch": region.epoch,
        "state": region.state.value,
        "borrows": region.borrows,
    }


def route_body(route: TableRoute, addresses: Addresses) -> RouteBody:
    return RouteBody(
        table_id=route.table_id, version=route.version, regions=regions_body(route, addresses)
    )


def summary(table: CatalogTable) -> TableSummary:
    info: TableInfo = table.info
    return TableSummary(
        id=info.table_id,
        name=info.name,
        version=info.version,
        created_at=time_of(info.created_at_ms),
        dropped_at=_time_or_none(table.dropped_at_ms),
    )


def schema_body(info: SchemaInfo, catalog_version: int) -> SchemaBody:
    return SchemaBody(
        id=info.schema_id,
        catalog=info.catalog,
        name=info.name,
        options=info.options,
        created_at=time_of(info.created_at_ms),
        catalog_version=catalog_version,
    )


def catalog_body(info: CatalogInfo, catalog: Catalog) -> CatalogBody:
    """Returns the body of one catalog. *catalog* is the catalog of all catalogs, at one version."""
    size = catalog.sizes.get(info.name, NOTHING)
    return CatalogBody(
        id=info.catalog_id,
        name=info.name,
        options=info.options,
        settings=TenantSettings(**info.own_settings.model_dump()),
        limits=TenantLimits.model_validate(info.own_limits.model_dump()),
        usage=TenantUsage(tables=size.tables, regions=size.regions),
        created_at=time_of(info.created_at_ms),
        catalog_version=catalog.version,
    )


def _time_or_none(wall_ms: int | None) -> str | None:
    return None if wall_ms is None else time_of(wall_ms)
