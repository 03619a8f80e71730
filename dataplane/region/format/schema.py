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


def joined(schema: RegionSchema, told: RegionSchema) -> RegionSchema:
    """Returns the schema that is known after `told`. The order of two calls does not change the
    result."""
    is_newer = told.columns is not None and told.version >= schema.version
    dead = schema.dead | told.dead
    return RegionSchema(
        version=max(schema.version, told.version),
        floor=max(schema.floor, told.floor),
        columns=told.columns if is_newer else schema.columns,
        indexes=(schema.indexes | told.indexes) - dead,
        dead=dead,
    )
