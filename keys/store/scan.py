"""A whole range at one revision, page by page, from any store."""

from collections.abc import AsyncIterator

from keys.key import Range
from keys.store.kv import PAGE_KEYS_MAX, Get, KeyPage, KeyValue, ReadableStore

WHOLE = Get(b"", limit=PAGE_KEYS_MAX)


async def scan(
    kv: ReadableStore, keys: Range, *, deadline_ms: int, revision: int = 0
) -> tuple[tuple[KeyValue, ...], int]:
    """Every key of *keys* at *revision*, or now (0), in key order, and the revision read.

    The deadline is that of each page. Raises Conflict("history-expired") when the revision is
    compacted before the last page: scan again.
    """
    items: list[KeyValue] = []
    read_revision = revision
    async for page in pages(kv, keys, deadline_ms=deadline_ms, revision=revision):
        items += page.items
        read_revision = page.revision
    return tuple(items), read_revision


async def pages(
    kv: ReadableStore,
    keys: Range,
    *,
    deadline_ms: int,
    revision: int = 0,
    like: Get = WHOLE,
) -> AsyncIterator[KeyPage]:
    """The same for whoever needs no more than one page at once: at least one, perhaps empty.

    *like*: keys of one page, fewer where each takes long to decode; and whether their values are
    read.
    """
    start, read_revision, more = keys.start, revision, True
    while more:
        get = like._replace(key=start, end=keys.end)
        page = await kv.range(get, deadline_ms=deadline_ms, revision=read_revision)
        yield page
        read_revision, more = page.revision, page.more
        start = page.items[-1].key + b"\0" if page.items else start
        assert page.items or not more, "a page without keys says that there are more"
