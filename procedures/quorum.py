"""Numbers of copies: those that a table has, and those that must be in sync. Pure."""

from collections.abc import Collection

from keys.model.placing.placements import PlacementInfo
from keys.model.tables import COPY_NUMBERS_FORMAT, OwnCopies, RegionRoute, TableInfo
from metasrv_base.values.frozen import frozen


@frozen
class CopyNumbers:
    """Copies of each region, and those of them without which it acknowledges nothing."""

    replicas: int = 1
    min_in_sync: int | None = None
    """The minimum; None for a majority of *replicas*."""

    @property
    def minimum(self) -> int:
        return min(self.min_in_sync or majority(self.replicas), self.replicas)


def majority(count: int) -> int:
    """More than half of *count*: 2 of 2, 2 of 3, 3 of 5."""
    return count // 2 + 1


def min_in_sync(info: TableInfo) -> int:
    """Copies of a region, the leader among them, without which it acknowledges nothing
    (docs/protocols.md P5.12). It counts the copies that the table is to have, not those that are
    left."""
    return table_numbers(info).minimum


def minimum_of(info: TableInfo, region: RegionRoute) -> int:
    """The minimum of one region: while a raised number of copies is not reached, that from before
    counts."""
    return region.min_in_sync or min_in_sync(info)


def has_minimum(info: TableInfo, region: RegionRoute) -> bool:
    """Whether enough copies are in sync: then rows are acknowledged without those that are not."""
    return len(region.in_sync) >= minimum_of(info, region)


REASON_NEEDED = "say why rows may be acknowledged on fewer disks than a majority of the copies"


def needs_reason(before: CopyNumbers, after: CopyNumbers) -> bool:
    """Whether the change has rows acknowledged with fewer copies in sync than before, and than a
    majority."""
    return after.minimum < min(before.minimum, majority(after.replicas))


def table_numbers(info: TableInfo) -> CopyNumbers:
    return CopyNumbers(info.replicas, info.min_in_sync)


def numbers_of(placement: PlacementInfo) -> CopyNumbers:
    return CopyNumbers(placement.replicas, placement.min_in_sync)


def own_numbers(info: TableInfo) -> tuple[int | None, int | None]:
    """`replicas` and `min_in_sync` as far as the table itself names them."""
    replicas = info.replicas if "replicas" in info.own_copies else None
    minimum = info.min_in_sync if "min_in_sync" in info.own_copies else None
    return replicas, minimum


def with_numbers(
    info: TableInfo, replicas: int | None, minimum: int | None, placed: CopyNumbers
) -> TableInfo:
    """The table with its own numbers, None for one that it does not name. *placed*: those of its
    placement, whose minimum counts for a table that has the placement's number of copies. A table
    whose rows are in one process has one copy, whatever its placement says."""
    if info.is_volatile:
        placed = CopyNumbers()
    count = placed.replicas if replicas is None else replicas
    default = placed.min_in_sync if replicas is None else None
    if replicas is not None:
        minimum = said_minimum(replicas, minimum)
    own: list[OwnCopies] = []
    own += ["replicas"] if replicas is not None else []
    own += ["min_in_sync"] if minimum is not None else []
    stored = default if minimum is None else minimum
    if minimum is None and stored == majority(count):
        stored = None
    update: dict[str, object] = {"replicas": count, "min_in_sync": stored, "own_copies": tuple(own)}
    if own or stored is not None:
        update["format"] = max(info.format, COPY_NUMBERS_FORMAT)
    return info.model_copy(update=update)


def said_minimum(replicas: int, minimum: int | None) -> int | None:
    """The minimum as it is stored and compared: None for a majority."""
    return None if minimum == majority(replicas) else minimum


def follows(info: TableInfo, placed: CopyNumbers) -> bool:
    """Whether the table has the numbers of its placement where it names none."""
    return with_numbers(info, *own_numbers(info), placed) == info


def held_back(before: TableInfo, after: TableInfo, region: RegionRoute) -> RegionRoute:
    """The route of a region whose table has the numbers of *after* instead of those of *before*;
    *region* itself if nobody has to be told.

    A raised number of copies raises the minimum by default. No region has so many copies in sync at
    once, and writes are not refused for that: the minimum of before counts until it has. The same
    numbers once more change nothing.
    """
    if table_numbers(before) == table_numbers(after):
        return region
    current, minimum = minimum_of(before, region), min_in_sync(after)
    is_growing = after.replicas > before.replicas
    is_growing |= region.min_in_sync is not None and after.replicas != before.replicas
    held = current if is_growing and current < minimum > len(region.in_sync) else None
    is_same = (held or minimum) == current and held == region.min_in_sync
    if is_same and after.replicas == before.replicas:
        return region
    changed = region.with_minimum(held)
    return changed.without_eligible() if has_minimum(after, changed) else changed


def reached(region: RegionRoute, minimum: int) -> RegionRoute:
    """The region once as many copies are in sync as its table requires: nothing less counts from
    then on."""
    if region.min_in_sync is None or len(region.in_sync) < minimum:
        return region
    return region.with_minimum(None)


def changed_regions(
    before: TableInfo, after: TableInfo, regions: Collection[RegionRoute]
) -> tuple[RegionRoute, ...]:
    """The routes of the regions whose nodes are to be told of the numbers of *after*."""
    new = [(region, held_back(before, after, region)) for region in regions]
    return tuple([held for region, held in new if held is not region])
