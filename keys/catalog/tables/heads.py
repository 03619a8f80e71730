"""Heads of tables: as much of a table as the catalog's indexes hold.

A catalog of a million tables keeps all heads and decodes a table when somebody asks for it.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from keys.catalog.parts.placing import (
    CopyUse,
    PlacementUse,
    copy_use,
    named_placement,
    placement_used,
)
from keys.model.tables import RegionState, TableInfo, TableRoute
from metasrv_base.ids import RegionId, number_of

SchemaName = tuple[str, str]
RawItem = Mapping[str, Any]
"""An item of a snapshot as JSON that was parsed, not validated."""
USE_FIELDS = ("placement_id", "storage_profile", "tablespace_id", "dropping")
SHARED_MAX = 4_096
"""Values of HeldRegions that are held once: most tables have few regions, all of them open."""


class HeldRegion(NamedTuple):
    """A region of one table, at a node that has a copy of it."""

    number: int
    epoch: int
    state: RegionState
    is_leader: bool
    copies_version: int = 0
    """The version of the region's copies; 0: it never had more than one."""


HeldRegions = tuple[HeldRegion, ...]


class TableHead(NamedTuple):
    """A table's part of the catalog's indexes."""

    table_id: int
    schema: SchemaName
    name: str
    is_freed: bool
    """Whether a batch has dropped it: it bears no name."""
    is_dropped: bool
    catalog_version: int
    held: Mapping[str, HeldRegions]
    """Regions by node."""
    states: tuple[RegionState, ...]
    """The state of each region."""
    placement: PlacementUse | None = None
    """The placement in use (keys/catalog/parts/placing.py); None: as every table."""
    tablespace_id: int | None = None
    copies: CopyUse | None = None
    """Its numbers of copies; None: as most tables."""
    placement_id: int | None = None
    """Its placement, also if a batch has dropped it; None: the default one."""


def head_of(
    info: TableInfo, route: TableRoute, catalog_version: int, *, is_dropped: bool
) -> TableHead:
    return TableHead(
        info.table_id,
        (info.catalog, info.schema_name),
        info.name,
        info.dropping is not None,
        is_dropped,
        catalog_version,
        held_regions(route),
        tuple(region.state for region in route.region_routes),
        *_uses(info.placement_id, info.storage_profile, info.tablespace_id, info.dropping),
        copy_use(info.replicas, info.min_in_sync, info.own_copies, info.dropping),
        named_placement(info.placement_id),
    )


def head_in(item: RawItem) -> TableHead:
    """The head of the table in a TableItem's JSON, without the models. Raises KeyError, TypeError
    or ValueError for what is none."""
    info, regions = item["info"], item["route"]["region_routes"]
    return TableHead(
        info["table_id"],
        (info["catalog"], info["schema"]),
        info["name"],
        info.get("dropping") is not None,
        item["dropped_at_ms"] is not None,
        item["catalog_version"],
        _by_node(
            (
                (region["leader"], [copy["node"] for copy in region.get("copies", ())]),
                number_of(RegionId(int(region["region_id"]))),
                region["epoch"],
                RegionState(region["state"]),
                region.get("copies_version", 0),
            )
            for region in regions
        ),
        tuple(RegionState(region["state"]) for region in regions),
        *_uses(*map(info.get, USE_FIELDS)),
        copy_use(
            info["replicas"],
            info.get("min_in_sync"),
            info.get("own_copies", ()),
            info.get("dropping"),
        ),
        named_placement(info.get("placement_id")),
    )


def _uses(
    placement_id: int | None, profile: str | None, tablespace_id: int | None, dropping: str | None
) -> tuple[PlacementUse | None, int | None]:
    """A table that a batch has dropped uses nothing."""
    if dropping is not None:
        return None, None
    return placement_used(placement_id, profile), tablespace_id


def held_regions(route: TableRoute) -> Mapping[str, HeldRegions]:
    """The regions that each node has a copy of."""
    return _by_node(
        (
            (region.leader, region.other_nodes),
            region.number,
            region.epoch,
            region.state,
            region.copies_version,
        )
        for region in route.region_routes
    )


def _by_node(
    regions: Iterable[tuple[tuple[str, Iterable[str]], int, int, RegionState, int]],
) -> Mapping[str, HeldRegions]:
    held: dict[str, list[HeldRegion]] = {}
    for (leader, others), number, epoch, state, version in regions:
        held.setdefault(leader, []).append(HeldRegion(number, epoch, state, True, version))
        for node in others:
            held.setdefault(node, []).append(HeldRegion(number, epoch, state, False, version))
    return {node: _shared(tuple(regions_of_node)) for node, regions_of_node in held.items()}


def leaders_in(held: HeldRegions) -> int:
    """Returns the number of regions that are led, of those of one table at one node."""
    return sum(region.is_leader for region in held)


@lru_cache(SHARED_MAX)
def _shared(held: HeldRegions) -> HeldRegions:
    """Returns the one value that all equal ones share."""
    return held
