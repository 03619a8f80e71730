"""A manifest after the region was told a schema: its floor, and where it took hold (P6). Pure."""

from dataplane.region.format.columns import ordered
from dataplane.region.format.schema import RegionSchema, joined
from dataplane.region.manifests.manifest import Manifest
from metasrv_base.errors import Conflict, Refused, Unavailable


def with_schema(manifest: Manifest, newer: RegionSchema, version: int) -> Manifest:
    """The same if it knows all of it. The number is the caller's, and that nothing is ordered
    between `version`, the highest given, and this manifest."""
    old_schema = manifest.table_schema
    schema = joined(old_schema, newer)
    if schema == old_schema:
        return manifest
    assert schema.columns is not None, "every manifest has columns"
    return manifest.model_copy(
        update={
            "spec": manifest.spec.model_copy(update={"columns": ordered(schema.columns)}),
            "schema_version": schema.version,
            "schema_floor": schema.floor,
            "indexes": tuple(sorted(schema.indexes)),
            "dead_indexes": tuple(sorted(schema.dead)),
            "files": tuple(file for file in manifest.files if file.family not in schema.dead),
            "floor_version": version if schema.floor > old_schema.floor else manifest.floor_version,
        }
    )


def check_floor(schema: RegionSchema, version: int) -> None:
    """Raises Conflict `schema-version-stale` for a batch or read of a version below the floor."""
    if version < schema.floor:
        raise Conflict("schema-version-stale", floor=schema.floor, found=version)


def check_maintained(schema: RegionSchema, maintains_indexes: bool) -> None:
    """Raises Refused for a batch that would leave the indexes behind: a client's own, which writes
    rows alone."""
    if schema.indexes and not maintains_indexes:
        reason = "the table has indexes: rows are written through a frontend"
        raise Refused("invalid-request", reason=reason)


def check_index(schema: RegionSchema, index: int, schema_version: int) -> None:
    """Raises Refused for an index that the region does not have, or has no more, and Unavailable
    `not-ready` for one that may come with a schema that it was not told of."""
    if index in schema.indexes:
        return
    if index in schema.dead:
        raise Refused("invalid-request", index=index, reason="the index was dropped")
    if schema_version > schema.version:
        reason = f"it has not heard of schema version {schema_version} yet"
        raise Unavailable("not-ready", index=index, reason=reason)
    raise Refused("invalid-request", index=index, reason="there is no such index")
