"""Interfaces that the regions of a node use: a way to start tasks, and storage as orders see it."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from dataplane.region.engines.engine import ServedRegion
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leading import LedOpening
from metasrv_base.wire.node.orders import (
    CreateRegion,
    DeleteQuarantined,
    DiscardRoot,
    DropRegion,
    OpenRegion,
    QuarantineRoot,
)

Spawn = Callable[[Coroutine[Any, Any, None]], object]
"""Start a task of the process's task group (main.py owns it)."""


class OwnNode(Protocol):
    """The identity of this node, by which other nodes know that a request is meant for it."""

    cluster_id: str | None
    """The cluster; None: it has not joined yet."""

    @property
    def node_id(self) -> str: ...


class RegionStore(Protocol):
    """Blocking; called in threads. Unavailable `region-lost`: storage is gone."""

    def create(self, order: CreateRegion) -> ServedRegion: ...

    def open(self, order: OpenRegion) -> ServedRegion: ...

    def lead(self, order: CreateRegion | OpenRegion) -> LedOpening:
        """Opens, or makes, a region whose copies follow this node."""
        ...

    def follow(self, order: CreateRegion | OpenRegion) -> CopyRegion:
        """Opens, or makes, a copy."""
        ...

    def drop(self, order: DropRegion) -> None:
        """Delete the region's folder; done if there is none."""
        ...

    def discard(self, order: DiscardRoot, region: ServedRegion) -> None:
        """Delete a folder that `region` had borrowed; done if there is none."""
        ...

    def remove_folder(self, order: DiscardRoot | QuarantineRoot | DeleteQuarantined) -> None:
        """Delete the folder of a copy that has left the region, put a folder into quarantine, or
        delete it there; done if there is none."""
        ...
