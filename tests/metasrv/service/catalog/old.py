"""Versions that a server has forgotten, and a log that begins later than at version 1."""

from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from metasrv_base.errors import Refused
from tests.metasrv.api.rig import Server


def forget(one: Server) -> None:
    """The server keeps its newest version alone in memory."""
    follower = one.state.follower
    for version in [version for version in follower._kept if version < one.version]:
        del follower._kept[version]
        follower._updates.pop(version, None)
    follower._updates.pop(one.version, None)


@dataclass(frozen=True)
class Begins:
    """A log whose oldest version that can be read is `version`."""

    version: int
    at_ms: int = 0

    async def oldest(self) -> tuple[int, int]:
        return self.version, self.at_ms

    async def find(self, version: int) -> int:
        if version < self.version:
            raise Refused("history-expired", version=version, oldest=self.version)
        return self.version

    async def load(self, version: int) -> Catalog:
        raise AssertionError("nobody reads a version that can be read")
