"""Tables as frontends are told of them: from the catalog's models, or from their stored form.

The tables of a snapshot are told from their stored form, without a model: that takes a fifth of the
time, and a frontend that starts asks for all tables.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import RawItem
from keys.model.tables import CopyRole, RegionRoute, RegionState
from metasrv_base.elements.states import ElementState
from metasrv_base.wire.frontend.feed import (
    FeedColumn,
    FeedConstraint,
    FeedIndex,
    FeedRegion,
    FeedTable,
)
from metasrv_base.wire.model import WireModel

PUBLIC = ElementState.PUBLIC


def names_of(kind: type[WireModel]) -> tuple[str, ...]:
    return tuple(kind.model_fields)


COLUMN, INDEX, CONSTRAINT = names_of(FeedColumn), names_of(FeedIndex), names_of(FeedConstraint)
"""Fields that have the same name and form in the stored models."""


def feed_table(table: CatalogTable, state: ElementState = PUBLIC) -> FeedTable:
    info = table.info
    return FeedTable(
        id=info.table_id,
        catalog=info.catalog,
        schema_name=info.schema_name,
        name=info.name,
        version=info.version,
        schema_version=info.schema_version,
        schema_floor=info.schema_floor,
        state=state,
        columns=tuple(
            FeedColumn(
                id=column.id,
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                default=column.default,
                origin_default=column.origin_default,
                replaces=column.replaces,
                state=column.state,
            )
            for column in info.columns
        ),
        indexes=tuple(
            FeedIndex(
                id=index.id,
                name=index.name,
                columns=index.columns,
                unique=index.unique,
                state=index.state,
            )
            for index in info.indexes
        ),
        constraints=tuple(
            FeedConstraint(
                id=constraint.id,
                name=constraint.name,
                kind=constraint.kind.value,
                columns=constraint.columns,
                expression=constraint.expression,
                state=constraint.state,
            )
            for constraint in info.constraints
        ),
        primary_key=info.primary_key,
        partition=info.partition,
        regions=tuple(_feed_region(region) for region in table.route.region_routes),
    )


def feed_json(item: RawItem, state: ElementState) -> bytes:
    """Returns the JSON of `feed_table`, of a table in its stored form. Raises KeyError where that
    lacks a field that has a default."""
    info = item["info"]
    return orjson.dumps(
        {
            "id": info["table_id"],
            "catalog": info["catalog"],
            "schema_name": info["schema"],
            "name": info["name"],
            "version": info["version"],
            "schema_version": info["schema_version"],
            "schema_floor": info["schema_floor"],
            "state": state,
            "columns": _projected(info["columns"], COLUMN),
            "indexes": _projected(info["indexes"], INDEX),
            "constraints": _projected(info["constraints"], CONSTRAINT),
            "primary_key": info["primary_key"],
            "partition": info["partition"],
            "regions": [_raw_region(region) for region in item["route"]["region_routes"]],
        }
    )


def _projected(elements: Iterable[Mapping[str, Any]], names: tuple[str, ...]) -> list[Any]:
    return [{name: element[name] for name in names} for element in elements]


def _feed_region(region: RegionRoute) -> FeedRegion:
    return FeedRegion(
        region_id=region.region_id,
        leader=None if region.state is RegionState.LOST else region.leader,
        epoch=region.epoch,
        state=region.state.value,
        copies=tuple(copy.node for copy in region.copies if copy.role is CopyRole.IN_SYNC),
    )


def _raw_region(region: Mapping[str, Any]) -> dict[str, Any]:
    route = {
        "region_id": region["region_id"],
        "leader": None if region["state"] == RegionState.LOST else region["leader"],
        "epoch": region["epoch"],
        "state": region["state"],
    }
    in_sync = [c["node"] for c in region.get("copies", ()) if c["role"] == CopyRole.IN_SYNC]
    return {**route, "copies": in_sync} if in_sync else route
