"""Interfaces that the regions of a node use: a way to start tasks, and storage as orders see it."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from dataplane.region.engines.engine import ServedRegion
from metasrv_base.wire.node.orders import CreateRegion, DiscardRoot, DropRegion, OpenRegion

Spawn = Callable[[Coroutine[Any, Any, None]], object]
"""Start a task of the process's task group (main.py owns it)."""


class RegionStore(Protocol):
    """Blocking; called in threads. Unavailable `region-lost`: storage is gone."""

    def create(self, order: CreateRegion) -> ServedRegion: ...

    def open(self, order: OpenRegion) -> ServedRegion: ...

    def drop(self, order: DropRegion) -> None:
        """Delete the region's folder; done if there is none."""
        ...

    def discard(self, order: DiscardRoot, region: ServedRegion) -> None:
        """Delete a folder that `region` had borrowed; done if there is none."""
        ...
