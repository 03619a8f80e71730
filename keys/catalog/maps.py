"""Changes of the maps of a catalog, each as a new map; and what is counted in them."""

from typing import TypeVar

from immutables import Map

from keys.model.tables import Column, RegionState, TableInfo, TableRoute
from metasrv_base.values.frozen import frozen
from metasrv_base.values.intern_fields import Shapes, intern_fields

K = TypeVar("K")
V = TypeVar("V")


def without(collection: Map[K, V], key: K) -> Map[K, V]:
    return collection.delete(key) if key in collection else collection


def counted(states: Map[RegionState, int], route: TableRoute, by: int) -> Map[RegionState, int]:
    for region in route.region_routes:
        states = states.set(region.state, states.get(region.state, 0) + by)
    return states


def kept(collection: Map[K, V], key: K, value: V) -> Map[K, V]:
    """*collection* with *value*; a collection in which nothing is left is not kept."""
    return collection.set(key, value) if value else collection.delete(key)


def added(counts: Map[str, int], node: str, more: int) -> Map[str, int]:
    """*counts* with *more* at a node; without the node where nothing is left."""
    count = counts.get(node, 0) + more
    if count:
        return counts.set(node, count) if more else counts
    return counts.delete(node) if node in counts else counts


@frozen
class TenantSize:
    tables: int = 0
    """Living ones, also those that are being dropped."""
    regions: int = 0


NOTHING = TenantSize()
Sizes = Map[str, TenantSize]
"""Sizes by name of the catalog; one without a table is not here."""


def grown(size: TenantSize | None, regions: int) -> TenantSize:
    """Returns *size* with one table of *regions* more."""
    before = size or NOTHING
    return TenantSize(before.tables + 1, before.regions + regions)


def resized(sizes: Sizes, info: TableInfo, route: TableRoute, by: int) -> Sizes:
    """Returns *sizes* with *by* more of a table: 1 or -1."""
    size = sizes.get(info.catalog, NOTHING)
    regions = size.regions + by * len(route.region_routes)
    after = TenantSize(size.tables + by, regions)
    return sizes.delete(info.catalog) if after == NOTHING else sizes.set(info.catalog, after)


def slimmed(shapes: Shapes[Column], info: TableInfo, route: TableRoute) -> Shapes[Column]:
    """Lets *info* and *route* share their texts, and the columns that *shapes* has met. Returns
    the shapes with these."""
    intern_fields(
        info, info.partition, *info.indexes, *info.constraints, route, *route.region_routes
    )
    shapes, columns = shapes.met(info.columns)
    vars(info)["columns"] = columns  # equal ones
    return shapes
