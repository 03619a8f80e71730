"""Pages that end one too early or one too late: what is read page by page is not the whole."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from dataplane.frontend.statements import scans
from keys.key import Range
from keys.store import scan
from keys.store.kv import PAGE_KEYS_MAX, Get, KeyPage, ReadableStore
from keys.store.memory import MemoryKv
from metasrv.service import pages
from metasrv_base.rows.nodes import key_behind
from tests.dataplane.frontend.statements import test_statements
from tests.fakes.clock import FakeClock
from tests.keys.store.conformance import test_ranges
from tests.keys.store.conformance.store import Store
from tests.metasrv.service import test_pages

ABOVE, AFTER = pages._above, key_behind


async def from_the_last(
    kv: ReadableStore, keys: Range, *, deadline_ms: int, revision: int = 0
) -> AsyncIterator[KeyPage]:
    """A page begins with the last key of the one before."""
    start, at, more = keys.start, revision, True
    while more:
        get = Get(start, keys.end, limit=PAGE_KEYS_MAX)
        page = await kv.range(get, deadline_ms=deadline_ms, revision=at)
        yield page
        at, more, start = page.revision, page.more, page.items[-1].key


def one_further(items: Sequence[Any], place: Any, after: tuple[str | int, ...]) -> int:
    """A list goes on behind the first that has not been shown."""
    return ABOVE(items, place, after) + 1


def the_last_again(part: pa.Table) -> bytes:
    """A page of rows begins with the last row of the one before."""
    return AFTER(part).removesuffix(b"\x00")


async def whole_range() -> None:
    clock = FakeClock()
    store = Store(MemoryKv(clock), clock)
    await test_ranges.test_given_writes_between_pages_when_scanned_then_all_is_of_one_revision(
        store
    )


PLANTED: dict[str, tuple[object, str, object, Callable[[], Awaitable[None]]]] = {
    "a page of the store ends one too early": (scan, "pages", from_the_last, whole_range),
    "a page of a list ends one too late": (
        pages,
        "_above",
        one_further,
        test_pages.test_given_a_list_when_read_in_pages_of_any_size_then_each_item_comes_once_in_order,
    ),
    "a page of rows ends one too early": (
        scans,
        "key_behind",
        the_last_again,
        test_statements.test_given_rows_of_several_regions_when_written_then_every_read_finds_them,
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
async def test_given_a_planted_page_end_when_pages_are_put_together_then_they_are_not_the_whole(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, planted, reading = PLANTED[bug]
    monkeypatch.setattr(where, name, planted)

    with pytest.raises((AssertionError, ExceptionGroup)) as caught:
        await reading()

    found = caught.value
    while isinstance(found, ExceptionGroup):
        (found,) = found.exceptions
    assert isinstance(found, AssertionError), found
