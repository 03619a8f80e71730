"""A change asks no more of the store beside many tables, and a table takes little of memory."""

import gc
import tracemalloc
from typing import Any

import pytest

from keys.catalog.catalog import Catalog
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.store.scan import scan
from keys.value import decode
from metasrv.service.state.feed_lines import FeedLines
from metasrv_base.feed.catalog_replica import FeedReader
from metasrv_base.wire.frontend.feed import read_line
from tests.metasrv.api.counted import CountedKv, Counts, with_tables
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, leader, spec

MANY, HELD = 1_000, 500
WAIT = {"prefer": "wait=10"}
CLOCK_CALLS, CLOCK_KEYS = 3, 9
"""Calls and keys that a leader asks the store for by the clock, while one change is made slowly."""
SERVER_BYTES_MAX = 2_800
"""Bytes of a table of eight columns and one region; 2,200 are taken, 5,300 if columns are not
shared."""
FRONTEND_BYTES_MAX = 1_900
"""1,400 are taken."""


COLUMN = {"op": "add_column", "column": {"name": "seats", "type": "int32"}}
CHANGES: tuple[tuple[str, str, str, Any], ...] = (
    ("create", "POST", "", spec()),
    ("add column", "POST", "/t/alter", {"operations": [COLUMN]}),
    ("create index", "POST", "/t/indexes", {"name": "i", "columns": ["carrier"]}),
    ("rename", "POST", "/t/rename", {"new_name": "u"}),
    ("truncate", "POST", "/u/truncate", None),
    ("drop", "DELETE", "/u", None),
)


async def _asked(tables: int) -> list[tuple[str, Counts]]:
    """One change after the other, and what each asked of the store."""
    found: list[tuple[str, Counts]] = []
    async with leader(make_kv=CountedKv, given=with_tables(tables)) as one:
        assert isinstance(one.kv, CountedKv)
        await one.make("warm")
        for name, method, path, body in CHANGES:
            one.kv.counts = Counts()
            answer = await one.client.request(method, f"{TABLES}{path}", json=body, headers=WAIT)
            assert answer.is_success, answer.text
            found.append((name, one.kv.counts))
        assert len(one.state.follower.catalog.tables) == tables + 2
    return found


@pytest.mark.case("online 79")
async def test_given_many_tables_when_one_changes_then_the_store_is_asked_no_more() -> None:
    few, many = await _asked(1), await _asked(MANY)

    for (name, before), (_, now) in zip(few, many, strict=True):
        assert abs(now.calls - before.calls) <= CLOCK_CALLS, name
        assert abs(now.keys - before.keys) <= CLOCK_KEYS, name
        assert now.size_bytes <= before.size_bytes * 1.02, name  # versions and ids have more digits


@pytest.mark.slow
@pytest.mark.case("online 79")
async def test_given_many_tables_of_the_same_columns_when_held_then_each_takes_little() -> None:
    raw = await _log()
    tracemalloc.start()
    try:
        before, catalog = _traced(), Catalog()
        for revision, value in enumerate(raw, start=1):
            catalog = catalog.apply(decode(CatalogUpdate, value, key="update"), revision)
        server = (_traced() - before) / HELD
        sent = list(FeedLines().snapshot(catalog, None, {}))
        before, reading = _traced(), FeedReader()
        for line in sent:
            reading = reading.heard(read_line(line))
        frontend = (_traced() - before) / HELD
    finally:
        tracemalloc.stop()

    assert reading.mirror is not None
    assert len(catalog.tables) == len(reading.mirror.tables) == HELD
    assert server <= SERVER_BYTES_MAX, server
    assert frontend <= FRONTEND_BYTES_MAX, frontend


async def _log() -> list[bytes]:
    async with leader(given=with_tables(HELD)) as one:
        items, _ = await scan(one.kv, CatalogUpdateKey.under(), deadline_ms=DEADLINE_MS)
    return [item.value for item in items]


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
