"""Bounds within which every state is visited, and the protocol holds."""

from collections.abc import Mapping
from functools import cache

from tests.model.copies.explore import Exploration, explore
from tests.model.copies.world import Bounds, Setting

PROOFS: Mapping[str, Bounds] = {
    "two writes, three copies, the leader changes twice": Bounds(3, writes=2, epochs=3, versions=3),
    "three copies flush": Bounds(3, epochs=3, versions=3, flushes=True),
    "two copies flush, one starts again": Bounds(
        2, writes=2, epochs=3, versions=3, flushes=True, crashes=1
    ),
    "a learner joins one copy, leaves and comes back": Bounds(
        1, 1, writes=2, epochs=3, versions=5, crashes=1
    ),
    "a learner joins two copies": Bounds(2, 1, epochs=3, versions=4),
    "a copy is moved, another is promoted, and a disk is lost": Bounds(
        2, 1, versions=3, losses=1, min_in_sync=2, moves=True
    ),
    "files are ingested": Bounds(2, 1, flushes=True, ingests=True),
    "a disk is lost, and a node starts again": Bounds(2, 1, losses=1, min_in_sync=2, crashes=1),
    "a disk is lost under two writes": Bounds(
        2, writes=2, versions=5, losses=1, min_in_sync=2, flushes=True
    ),
    "an eligible copy leads, and a disk is lost": Bounds(2, epochs=3, losses=1, min_in_sync=2),
    "three copies are needed": Bounds(3, versions=5, min_in_sync=3),
    "an eligible copy leads while its leader is read": Bounds(
        2, 1, min_in_sync=2, reads=True, asks=False
    ),
    "two copies are read, one starts again": Bounds(2, epochs=3, versions=3, crashes=1, reads=True),
    "two copies are read while their set changes": Bounds(2, writes=2, versions=3, reads=True),
    "three copies are read": Bounds(3, versions=2, reads=True),
}
"""By what happens."""


@cache
def explored(bounds: Bounds) -> Exploration:
    """Under the rules of the protocol; several tests look at one."""
    return explore(Setting(bounds))
