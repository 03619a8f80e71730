"""A page of the catalog's history, read backwards: from memory, then from the log.

A page ends when it is full, and also when it has read as much as one request may: then it has fewer
changes, or none, and a token.
"""

import asyncio
from dataclasses import dataclass, field

from keys.catalog.log.update_heads import UpdateHead
from metasrv.service.history.changes import Filters, Group, change_of
from metasrv.service.past.requests_of import GAP, HeadGroup, closed, put_together
from metasrv.service.past.version_reader import VersionReader
from metasrv_base.errors import Unavailable
from metasrv_base.wire.api.versions import CatalogChange

HEADS_MAX = 32_768  # looked at for a page: some 30 MB of the log, and 1 s of a thread
WINDOWS_MAX = 8  # read for a page, some 150 ms each


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Changes below the version *below*, of versions up to *newest*."""

    newest: int
    below: int
    size: int
    filters: Filters
    transitions: bool


@dataclass(slots=True)
class HistoryPage:
    """`read` fills it. `after`: the version of the last change that was looked at, where more may
    be left; None: nothing is."""

    request: PageRequest
    reader: VersionReader
    changes: list[CatalogChange] = field(default_factory=list)
    after: int | None = None
    _looked_at: int | None = None

    async def read(self) -> None:
        """Raises as `VersionReader`; but Unavailable only where not one change was looked at."""
        try:
            await self._read()
        except Unavailable:
            if self._looked_at is None:
                raise
            self.after = self._looked_at

    async def _read(self) -> None:
        request, floor = self.request, self.reader.floor
        ahead = 0 if request.transitions else GAP  # a later version of the same request
        high = low = min(request.newest, request.below - 1 + ahead)
        heads, step = list[UpdateHead](), 2 * GAP
        while low > floor:
            begin = max(floor, low - step)
            heads = await self.reader.heads(begin, low) + heads
            low, step = begin, len(heads) + GAP
            is_much = high - low >= HEADS_MAX
            groups = put_together(heads, transitions=request.transitions)
            below = request.below if self._looked_at is None else self._looked_at
            groups = [group for group in groups if group.version < below]
            whole = groups if request.transitions else closed(groups, low, floor)
            if is_much and not whole and self._looked_at is None:
                whole = groups[:1]  # it began long ago: the rest of it is not told
            if await self._take(whole) or (is_much and self._looked_at is not None):
                self.after = self._looked_at
                return

    async def _take(self, groups: list[HeadGroup]) -> bool:
        """Looks at *groups*. True: the page is full, or has read enough; more may be left."""
        request = self.request
        for number, group in enumerate(groups):
            is_full = len(self.changes) == request.size
            if is_full or self.reader.windows > WINDOWS_MAX:
                return True
            if group.may_be(request.filters.by, request.filters.table_id):
                change = await self._change(group)
                if change is not None:
                    self.changes.append(change)
            self._looked_at = group.version
            if number % 16 == 0:
                await asyncio.sleep(0)
        return False

    async def _change(self, group: HeadGroup) -> CatalogChange | None:
        reader, newest = self.reader, group.newest
        updates = [await reader.update(head.version) for head in newest]
        first, last = newest[0].version, group.version
        after = await reader.at(last, last)
        before = await reader.at(first - 1, first)
        made = Group(group.root, updates)
        request = self.request
        return change_of(made, before, after, request.filters, transitions=request.transitions)
