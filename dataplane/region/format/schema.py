"""The part of a table's schema that a region knows. It only grows, in whatever order it is told.
Pure."""

from dataclasses import dataclass

from dataplane.region.format.columns import ColumnDef


@dataclass(frozen=True, slots=True)
class RegionSchema:
    """`version`: the newest that is known; batches and reads below `floor` are refused (P6)."""

    version: int = 0
    floor: int = 0
    columns: tuple[ColumnDef, ...] | None = None
    """Columns in order of id. None: not told."""
    indexes: frozenset[int] = frozenset()
    """Families that may hold entries."""
    dead: frozenset[int] = frozenset()
    """Families that were removed, and are never taken again."""


def joined(schema: RegionSchema, newer: RegionSchema) -> RegionSchema:
    """Returns the schema that is known after `news`. The order of two calls does not change the
    result."""
    is_newer = newer.columns is not None and newer.version >= schema.version
    dead = schema.dead | newer.dead
    return RegionSchema(
        version=max(schema.version, newer.version),
        floor=max(schema.floor, newer.floor),
        columns=newer.columns if is_newer else schema.columns,
        indexes=(schema.indexes | newer.indexes) - dead,
        dead=dead,
    )
