"""A manifest after the region was told a schema: its floor, and where it took hold (P6). Pure."""

from base.errors import Conflict
from dataplane.region.columns import ordered
from dataplane.region.manifest import Manifest
from dataplane.region.schema import RegionSchema, joined


def told(manifest: Manifest, news: RegionSchema, version: int) -> Manifest:
    """The same if it knows all of it. The number is the caller's, and that nothing is ordered
    between `version`, the highest given, and this manifest."""
    known = manifest.table_schema
    schema = joined(known, news)
    if schema == known:
        return manifest
    assert schema.columns is not None, "every manifest has columns"
    return manifest.model_copy(
        update={
            "spec": manifest.spec.model_copy(update={"columns": ordered(schema.columns)}),
            "schema_version": schema.version,
            "schema_floor": schema.floor,
            "indexes": tuple(sorted(schema.indexes)),
            "dead_indexes": tuple(sorted(schema.dead)),
            "floor_version": version if schema.floor > known.floor else manifest.floor_version,
        }
    )


def check_floor(schema: RegionSchema, found: int) -> None:
    """Raises Conflict `schema-version-stale` for a batch or read of a version below the floor."""
    if found < schema.floor:
        raise Conflict("schema-version-stale", floor=schema.floor, found=found)
