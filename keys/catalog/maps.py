"""Changes of immutable maps, each as a new map."""

from typing import TypeVar

from immutables import Map

from keys.model.tables import RegionState, TableRoute

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
