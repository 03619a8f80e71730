"""Views of what tables are in: tenants, schemas, placements, tablespaces. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.maps import NOTHING
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from metasrv.service.bodies.placement_shapes import placement_definition
from metasrv.service.views.scope import ViewScope
from metasrv.service.views.table_units import in_order
from metasrv.service.views.view import (
    CatalogUnits,
    Position,
    Row,
    Units,
    View,
    ViewFacts,
    json_text,
)
from metasrv.service.views.view import ViewColumn as Column
from metasrv_base.concurrency.turns import slices
from metasrv_base.wire.model import WireModel
from procedures.quorum import numbers_of

NAMED_AT_ONCE = 128  # units between two yields of the event loop
Named = Iterable[tuple[Position, Any]]


def _named(items: Callable[[Catalog, ViewScope], Named]) -> CatalogUnits:
    """Units of objects by name: positions differ."""

    def units(catalog: Catalog, scope: ViewScope, low: Position | None) -> Iterator[Units]:
        there = yield from in_order(items(catalog, scope))
        yield from slices((item for item in there if low is None or item[0] >= low), NAMED_AT_ONCE)

    return CatalogUnits(units)


def _is_in(values: frozenset[str] | None, value: str) -> bool:
    return values is None or value in values


def _tenants(catalog: Catalog, scope: ViewScope) -> Named:
    names = scope.texts("catalog_name")
    return (((name,), info) for name, info in catalog.catalogs.items() if _is_in(names, name))


def _schemas(catalog: Catalog, scope: ViewScope) -> Named:
    catalogs, names = scope.texts("catalog_name"), scope.texts("schema_name")
    return (
        (name, info)
        for name, info in catalog.schemas.items()
        if name[0] in catalog.catalogs and _is_in(catalogs, name[0]) and _is_in(names, name[1])
    )


def _placements(catalog: Catalog, scope: ViewScope) -> Named:
    return (((name,), info) for name, info in catalog.placing.placements.items())


def _tablespaces(catalog: Catalog, scope: ViewScope) -> Named:
    return (
        ((holder, name), info)
        for holder in catalog.catalogs
        for name, info in catalog.placing.tablespaces_of(holder).items()
    )


def _tenant_rows(facts: ViewFacts, info: CatalogInfo) -> Iterator[Row]:
    size = facts.catalog.sizes.get(info.name, NOTHING)
    settings, limits = info.own_settings, info.own_limits
    yield (
        info.name,
        info.catalog_id,
        size.tables,
        size.regions,
        limits.tables,
        limits.regions,
        limits.procedures,
        settings.autocommit,
        settings.tx_isolation,
        settings.drop_retention_ms,
        json_text(info.options),
        info.created_at_ms,
    )


def _schema_rows(facts: ViewFacts, info: SchemaInfo) -> Iterator[Row]:
    yield info.catalog, info.name, info.schema_id, json_text(info.options), info.created_at_ms


def _placement_rows(facts: ViewFacts, info: PlacementInfo) -> Iterator[Row]:
    body = placement_definition(info)
    yield (
        info.name,
        info.placement_id,
        info.replicas,
        numbers_of(info).minimum,
        info.partitions,
        json_text([_plain(profile) for profile in body.storage_profiles]),
        json_text(_plain(body.node_filter)),
        json_text(list(body.preferred_zones)),
        info.comment,
        info.version,
        info.created_at_ms,
    )


def _tablespace_rows(facts: ViewFacts, info: TablespaceInfo) -> Iterator[Row]:
    yield (
        info.catalog,
        info.name,
        info.tablespace_id,
        info.comment,
        info.version,
        info.created_at_ms,
    )


def _plain(model: WireModel) -> Any:
    return model.model_dump(mode="json", by_alias=True)


CREATED = Column("created_at", "timestamp(ms)", "The time at which it was made.")
OPTIONS = Column("options", "string", "Its options, as a JSON object.")
COMMENT = Column("comment", "string", "Its comment.")
VERSION = Column("version", "int64", "Rises at every change of it.")

NAMESPACE_VIEWS = (
    View(
        "tenants",
        "Catalogs, with their limits and what they hold.",
        (
            Column("catalog_name", "string", "The name of the catalog."),
            Column("catalog_id", "int64", "Its id."),
            Column("table_count", "int64", "Its tables, without dropped ones."),
            Column("region_count", "int64", "Regions of those."),
            Column("tables_limit", "int64", "Maximum number of tables; null: no limit."),
            Column("regions_limit", "int64", "Maximum number of regions; null: no limit."),
            Column(
                "procedures_limit", "int64", "Maximum number of concurrent changes; null: no limit."
            ),
            Column("autocommit", "boolean", "Each statement is a transaction of its own."),
            Column("tx_isolation", "string", "The isolation of a transaction."),
            Column(
                "drop_retention_ms",
                "int64",
                "Time for which its dropped tables are kept; null: the setting of the cluster.",
            ),
            OPTIONS,
            CREATED,
        ),
        _named(_tenants),
        _tenant_rows,
        narrowed_by=("catalog_name",),
    ),
    View(
        "schemata",
        "Schemas.",
        (
            Column("catalog_name", "string", "The catalog that holds the schema."),
            Column("schema_name", "string", "The name of the schema."),
            Column("schema_id", "int64", "Its id."),
            OPTIONS,
            CREATED,
        ),
        _named(_schemas),
        _schema_rows,
        narrowed_by=("catalog_name", "schema_name"),
    ),
    View(
        "placements",
        "Placements: the number of copies, the nodes and the engines of regions.",
        (
            Column("placement_name", "string", "The name of the placement."),
            Column("placement_id", "int64", "Its id; a rename keeps it."),
            Column("replicas", "int64", "Copies of each region."),
            Column("min_in_sync", "int64", "Copies in sync that writes need."),
            Column("partitions", "int64", "Regions of a table that names no partitions."),
            Column("storage_profiles", "string", "Engines and their options, as a JSON list."),
            Column("node_filter", "string", "The nodes that may keep regions, as JSON."),
            Column(
                "preferred_zones",
                "string",
                "Zones in which leaders are wanted, the best first, as a JSON list.",
            ),
            COMMENT,
            VERSION,
            CREATED,
        ),
        _named(_placements),
        _placement_rows,
    ),
    View(
        "tablespaces",
        "Tablespaces: tables in one keep their regions together.",
        (
            Column("catalog_name", "string", "The catalog that holds the tablespace."),
            Column("tablespace_name", "string", "The name of the tablespace."),
            Column("tablespace_id", "int64", "Its id; a rename keeps it."),
            COMMENT,
            VERSION,
            CREATED,
        ),
        _named(_tablespaces),
        _tablespace_rows,
    ),
)
