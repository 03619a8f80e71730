"""Versions of the catalog for one page of its history: from memory, and below it from the log."""

from dataclasses import dataclass, field

from keys.catalog.catalog import Catalog
from keys.catalog.log.log_window import LogWindow
from keys.catalog.log.update_heads import UpdateHead, head_of
from keys.model.log import CatalogUpdate
from metasrv.service.state.old_windows import WINDOW_VERSIONS
from metasrv.service.state.state import ServerState


@dataclass(slots=True)
class VersionReader:
    """Raises Refused("history-expired") where the log was cut meanwhile, and Unavailable as
    `OldWindows.holding`."""

    state: ServerState
    windows: int = 0
    """Windows that were read for this page."""
    _window: LogWindow | None = field(default=None, init=False)

    @property
    def floor(self) -> int:
        """The oldest version that can be read; updates can be above it."""
        follower = self.state.follower
        return min(follower.oldest_version, follower.log.floor)

    async def heads(self, low: int, high: int) -> list[UpdateHead]:
        """The heads of the updates above *low*, up to *high*."""
        heads, version, size = list[UpdateHead](), high, WINDOW_VERSIONS
        while version > low:
            update = self.state.follower.update(version)
            if update is not None:
                heads.append(head_of(update))
                version -= 1
                continue
            block = await self.state.windows.heads((version - 1) // size * size)
            heads += (head for head in reversed(block) if low < head.version <= version)
            version = block[0].version - 1
        return heads[::-1]

    async def update(self, version: int) -> CatalogUpdate:
        update = self.state.follower.update(version)
        if update is not None:
            return update
        return (await self._holding(version)).update(version)

    async def at(self, version: int, above: int) -> Catalog:
        """The catalog of *version*, which is *above* or the version before it."""
        catalog = self.state.follower.at(version)
        if catalog is not None:
            return catalog
        return (await self._holding(above)).at(version)

    async def _holding(self, version: int) -> LogWindow:
        if self._window is None or not self._window.has_update(version):
            self._window = await self.state.windows.holding(version)
            self.windows += 1
        return self._window
