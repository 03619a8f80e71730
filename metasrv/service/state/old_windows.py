"""Windows of the log below what is kept in memory, for readers of many versions in a row."""

from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, TypeVar

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.log.log_window import LogWindow
from keys.catalog.log.update_heads import UpdateHead
from keys.catalog.old_log import MissingUpdate, OldLog
from metasrv.service.state.old_versions import OldVersions
from metasrv_base.errors import Refused, Unavailable

T = TypeVar("T")

WINDOW_VERSIONS = 256  # some 100 ms to read, decode and apply
WINDOWS_KEPT = 4  # the ones read last, for readers of the same versions
LOADS_MAX = 4  # at once: each reads from the store and decodes in a thread
STRIDE = 4_096
"""Versions between two catalogs that are rebuilt from a snapshot. A reader that goes back folds
fewer than these for each window, not all the log above the snapshot."""
BLOCKS_KEPT = 128  # of heads: some 32,768 versions, 10 MB


class OldWindows:
    """Windows that readers share. One begins at a multiple of WINDOW_VERSIONS, or where the one
    before is full."""

    def __init__(self, log: OldLog, follower: Follower, old: OldVersions) -> None:
        self._log = log
        self._follower = follower
        self._old = old
        self._kept: OrderedDict[int, LogWindow] = OrderedDict()
        """Windows by the version before their first; the one that was read last is the last."""
        self._blocks: OrderedDict[int, tuple[UpdateHead, ...]] = OrderedDict()
        """Heads of the WINDOW_VERSIONS updates above a version; the one read last is the last."""
        self._loads = 0

    async def holding(self, version: int) -> LogWindow:
        """The window that has the update of *version*, which this server has applied.

        Raises Refused("history-expired") below the log; Unavailable("not-ready") while as many are
        loaded as may be at once, and as `OldVersions.at`.
        """
        assert 0 < version <= self._follower.catalog.version
        kept = next((each for each in self._kept.values() if each.has_update(version)), None)
        if kept is not None:
            self._kept.move_to_end(kept.base)
            return kept
        return await self._bounded(self._loaded(version), version)

    async def heads(self, begin: int) -> tuple[UpdateHead, ...]:
        """The heads of the WINDOW_VERSIONS updates above *begin*, as far as the log has them and
        this server has applied them. Raises as `holding`."""
        assert begin % WINDOW_VERSIONS == 0
        kept = self._blocks.get(begin)
        if kept is not None:
            self._blocks.move_to_end(begin)
            return kept
        first = max(begin, self._follower.log.floor) + 1
        last = min(begin + WINDOW_VERSIONS, self._follower.catalog.version)
        heads = await self._bounded(self._log.heads(first, last), first)
        if len(heads) == WINDOW_VERSIONS:
            self._blocks[begin] = heads
        if len(self._blocks) > BLOCKS_KEPT:
            self._blocks.popitem(last=False)
        return heads

    async def _bounded(self, load: Coroutine[Any, Any, T], version: int) -> T:
        if self._loads == LOADS_MAX:
            load.close()
            raise Unavailable("not-ready", what=f"version {version} of the log")
        self._loads += 1
        try:
            return await load
        except MissingUpdate as error:
            raise await self._old.explained(error) from error
        finally:
            self._loads -= 1

    async def _loaded(self, version: int) -> LogWindow:
        oldest, _ = await self._old.bases.oldest()
        if version <= oldest:
            raise Refused("history-expired", version=version, oldest=oldest)
        begin = (version - 1) // WINDOW_VERSIONS * WINDOW_VERSIONS
        end = min(begin + WINDOW_VERSIONS, self._follower.catalog.version)
        base = await self._base(max(begin, oldest), version, oldest)
        while True:
            window = await self._log.window(base, end)
            self._keep(window)
            if window.has_update(version):
                return window
            base = window.catalogs[-1]

    async def _base(self, begin: int, version: int, oldest: int) -> Catalog:
        """A catalog from *begin* on and below *version*."""
        near = [each.catalogs[-1] for each in self._kept.values() if begin <= each.last < version]
        if near:
            return max(near, key=lambda catalog: catalog.version)
        in_memory = self._follower.at(begin)
        if in_memory is not None:
            return in_memory
        stride = begin // STRIDE * STRIDE
        if oldest < stride < begin:
            await self._old.at(stride)
        return await self._old.at(begin)

    def _keep(self, window: LogWindow) -> None:
        self._kept[window.base] = window
        self._kept.move_to_end(window.base)
        if len(self._kept) > WINDOWS_KEPT:
            self._kept.popitem(last=False)
