"""The catalog log below what is kept in memory, read from the store in bounded parts."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import orjson

from keys.catalog.catalog import Catalog
from keys.catalog.log.log_window import LogWindow, window_of
from keys.catalog.log.update_heads import UpdateHead, heads_in
from keys.catalog.rebuild import Rebuild
from keys.commit.staged_parts import MissingParts, WholeItem, whole_item
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.store.kv import PAGE_KEYS_MAX, Get, KeyValue, ReadableStore
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import Corrupt

PART_BYTES = 2 << 20
"""Bytes of the updates that are read at once, estimated by the part before: one may have 1.5 MB."""
FIRST_PART = 64  # updates
WINDOW_BYTES = 16 << 20
"""JSON of the updates of a window; the last one may pass it."""
WINDOW_FIRST_PART = 16  # updates, before their sizes are known: 24 MB at most


class MissingUpdate(Corrupt):
    """An update that the log is to hold is not there; `version` says which. Updates below a
    snapshot are deleted, so the caller looks whether one was made meanwhile."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The next part of the log: the updates from `first` on, `count` of them, none above `last`."""

    first: int
    last: int
    count: int = FIRST_PART

    @property
    def behind(self) -> int:
        """The version behind the part; `first`: nothing is left."""
        return min(self.first + self.count, self.last + 1)

    def after(self, updates: int, size_bytes: int) -> "_Part":
        """The part that follows, of as many as are likely to have PART_BYTES. *updates*: the first
        of this part, that were read; *size_bytes*: what they have."""
        likely = max(1, updates * PART_BYTES // max(1, size_bytes))
        count = min(likely, 2 * self.count, PAGE_KEYS_MAX)
        return replace(self, first=self.first + updates, count=count)


@dataclass(frozen=True, slots=True)
class OldLog:
    """Updates are never changed, so parts are not bound to one revision of the store."""

    kv: ReadableStore
    deadline_ms: int

    async def rebuilt(self, fold: Rebuild, must_fit: Callable[[], None]) -> Catalog:
        """Runs *fold*, in a thread, over the updates that it needs; each part is read while the one
        before is folded.

        Raises MissingUpdate, and what *must_fit* raises, which is called after each part.
        """
        part = _Part(fold.base.version + 1, fold.to)
        items = await self._read(part)
        while items:
            part = part.after(len(items), sum(item.json_bytes for item in items))
            read = partial(self._read, part)
            items, _ = await fan_out(
                [read, partial(asyncio.to_thread, _folded, fold, items)], at_once=2
            )
            must_fit()
        return await asyncio.to_thread(at_once, fold.finished())

    async def window(self, base: Catalog, to: int) -> LogWindow:
        """The versions above *base* up to *to*, fewer where they have WINDOW_BYTES; decoded in a
        thread. Raises MissingUpdate."""
        assert base.version < to, "a window has an update"
        items = list[WholeItem]()
        part, size_bytes = _Part(base.version + 1, to, WINDOW_FIRST_PART), 0
        while size_bytes < WINDOW_BYTES and (raw := await self._raw(part)):
            part = part.after(len(raw), _size_of(raw))
            for item in raw:
                items.append(await self._whole(item))
                size_bytes += items[-1].json_bytes
                if size_bytes >= WINDOW_BYTES:
                    break
        return await asyncio.to_thread(window_of, base, items)

    async def heads(self, first: int, last: int) -> tuple[UpdateHead, ...]:
        """The heads of some updates, in order; parts of large ones are not read. Raises
        MissingUpdate."""
        heads, part = list[UpdateHead](), _Part(first, last, WINDOW_FIRST_PART)
        while raw := await self._raw(part):
            heads += await asyncio.to_thread(heads_in, raw)
            part = part.after(len(raw), _size_of(raw))
        return tuple(heads)

    async def _read(self, part: _Part) -> tuple[WholeItem, ...]:
        """The first updates of a part: up to a large one that makes PART_BYTES full, since 64 of
        those would take gigabytes."""
        items, size_bytes = list[WholeItem](), 0
        for item in await self._raw(part):
            items.append(await self._whole(item))
            size_bytes += items[-1].json_bytes
            if items[-1].lists and size_bytes >= PART_BYTES:
                break
        return tuple(items)

    async def _raw(self, part: _Part) -> tuple[KeyValue, ...]:
        """The updates as they are stored: the entries of a large one may be in parts."""
        if part.behind == part.first:
            return ()
        get = Get(bytes(CatalogUpdateKey(part.first)), bytes(CatalogUpdateKey(part.behind)))
        page = await self.kv.range(get, deadline_ms=self.deadline_ms)
        for version, item in enumerate(page.items, start=part.first):
            if item.key != bytes(CatalogUpdateKey(version)):
                raise MissingUpdate(log="gap", version=version)
        if len(page.items) < part.behind - part.first:
            raise MissingUpdate(log="gap", version=part.first + len(page.items))
        return page.items

    async def _whole(self, item: KeyValue) -> WholeItem:
        try:
            return await whole_item(self.kv, item, deadline_ms=self.deadline_ms)
        except MissingParts as error:  # deleted since, together with the update
            version = CatalogUpdateKey.parse(item.key).version
            raise MissingUpdate(log="gap", version=version) from error

    async def version_at(self, at_ms: int, low: int, high: int) -> int:
        """The last version up to *high* that was committed at or before *at_ms*; *low*: none above
        it was. Commit times rise with versions, so some 20 updates are read of a million."""
        while low < high:
            middle = (low + high + 1) // 2
            (item,) = await self._raw(_Part(middle, middle))
            is_before = orjson.loads(CatalogUpdate.unpack(item.value))["at_ms"] <= at_ms
            low, high = (middle, high) if is_before else (low, middle - 1)
        return low


def _size_of(items: Iterable[KeyValue]) -> int:
    return sum(len(item.value) for item in items)


def _folded(fold: Rebuild, items: tuple[WholeItem, ...]) -> tuple[WholeItem, ...]:
    fold.take(items)
    return ()
