"""The folders of a node that a leader lists, and those in quarantine."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from metasrv.settings.tunables import DEFAULTS
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.adoption import (
    AdoptAnswer,
    AdoptRequest,
    FoundRoot,
    Inventory,
    QuarantinedRoot,
)
from tests.metasrv.api.rig import Server


async def nothing() -> None:
    pass


@dataclass
class ListedDisk:
    """The disk of dn-1. *listed*: called once its folders were listed."""

    roots: list[FoundRoot] = field(default_factory=list)
    quarantined: list[QuarantinedRoot] | None = None
    node_id: str = "dn-1"
    following: str | None = None
    is_silent: bool = False
    listed: Callable[[], Awaitable[None]] = nothing
    first: int = 0

    async def adopt(self, address: str, request: AdoptRequest) -> AdoptAnswer:
        raise NotImplementedError

    async def log_ends(self, address: str, region_id: int) -> Inventory:
        raise NotImplementedError

    async def inventory(self, address: str, first: int, last: int) -> Inventory:
        if self.is_silent:
            raise Unavailable(what=address)
        self.first = first
        page = Inventory(
            node_id=self.node_id,
            cluster_id=None,
            roots=list(self.roots),
            dropped=[],
            quarantined=self.quarantined,
            next=self.following,
        )
        await self.listed()
        return page


def root_of(one: Server, name: str, **facts: Any) -> FoundRoot:
    path, region_id = f"/data/dn-1/regions/{name}", name.partition("-")[0]
    old_ms = one.clock.wall_ms() - DEFAULTS.orphan_grace_ms
    shown = {"fence_epoch": 1, "fence_opening": 1, "opener": path, "fenced_ms": old_ms}
    return FoundRoot(region_id=region_id, root=path, **{**shown, **facts})


def with_disk(one: Server, listed: ListedDisk | None = None) -> ListedDisk:
    """Puts a disk in the place of those of all nodes."""
    disk = ListedDisk() if listed is None else listed
    one.state.term = replace(one.term, adopter=disk)
    return disk
