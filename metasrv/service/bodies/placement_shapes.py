"""Stored placements and tablespaces as the wire shows them. Pure."""

from keys.model.placing.placements import LabelCondition, PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from metasrv.service.bodies.shapes import time_of
from metasrv_base.wire.api.placing.placements import (
    LabelConditionSpec,
    NodeFilterSpec,
    PlacementBody,
    PlacementDefinition,
    StorageProfileSpec,
    TablespaceBody,
    TablespaceDefinition,
)


def placement_body(info: PlacementInfo, catalog_version: int) -> PlacementBody:
    definition = placement_definition(info)
    return PlacementBody(**dict(definition), catalog_version=catalog_version)


def placement_definition(info: PlacementInfo) -> PlacementDefinition:
    profiles = (
        StorageProfileSpec(name=each.name, engine=each.engine, options=each.options)
        for each in info.storage_profiles
    )
    labels = tuple(map(_condition, info.node_filter.labels))
    return PlacementDefinition(
        id=info.placement_id,
        name=info.name,
        version=info.version,
        replicas=info.replicas,
        min_in_sync=info.min_in_sync,
        partitions=info.partitions,
        storage_profiles=tuple(profiles),
        node_filter=NodeFilterSpec(zones=info.node_filter.zones, labels=labels),
        preferred_zones=info.preferred_zones,
        comment=info.comment,
        created_at=time_of(info.created_at_ms),
    )


def _condition(condition: LabelCondition) -> LabelConditionSpec:
    if len(condition.values) == 1:
        condition_fields: dict[str, object] = {"equals": condition.values[0]}
    else:
        condition_fields = {"in": condition.values}
    return LabelConditionSpec.model_validate({"label": condition.label, **condition_fields})


def tablespace_body(info: TablespaceInfo, catalog_version: int) -> TablespaceBody:
    definition = tablespace_definition(info)
    return TablespaceBody(**dict(definition), catalog_version=catalog_version)


def tablespace_definition(info: TablespaceInfo) -> TablespaceDefinition:
    return TablespaceDefinition(
        id=info.tablespace_id,
        catalog=info.catalog,
        name=info.name,
        comment=info.comment,
        version=info.version,
        created_at=time_of(info.created_at_ms),
    )
