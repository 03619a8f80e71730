"""What a region knows of its table's schema. It only grows, whatever order it is told in. Pure."""

from dataclasses import dataclass

from dataplane.region.format.columns import ColumnDef


@dataclass(frozen=True, slots=True)
class RegionSchema:
    """`version`: the newest that is known; batches and reads below `floor` are refused (P6)."""

    version: int = 0
    floor: int = 0
    columns: tuple[ColumnDef, ...] | None = None
    """In order of id. None: not told."""
    indexes: frozenset[int] = frozenset()
    """Families that may hold entries."""
    dead: frozenset[int] = frozenset()
    """Families that were removed, and are never taken again."""


def joined(known: RegionSchema, told: RegionSchema) -> RegionSchema:
    """What is known after `told`. Of two orders, whichever comes first, the end is the same."""
    is_newer = told.columns is not None and told.version >= known.version
    dead = known.dead | told.dead
    return RegionSchema(
        version=max(known.version, told.version),
        floor=max(known.floor, told.floor),
        columns=told.columns if is_newer else known.columns,
        indexes=(known.indexes | told.indexes) - dead,
        dead=dead,
    )
