"""Pages of the history across memory and log: they are what the whole log says, cut."""

from random import Random
from typing import Any

import pytest

from keys.catalog.log.update_heads import head_of
from keys.model.log import CatalogUpdate
from keys.model.origin import Origin
from metasrv.service.history import history_page
from metasrv.service.history.changes import Filters, Group, change_of
from metasrv.service.history.history_page import HistoryPage, PageRequest
from metasrv.service.past import requests_of, version_reader
from metasrv.service.past.requests_of import put_together
from metasrv.service.past.version_reader import VersionReader
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.api.versions import CatalogChange
from tests.keys.catalog.logs import update
from tests.metasrv.service.past.stored_log import WINDOW, StoredLog, small, stored_log

GAP = 5
FILTERS = [
    Filters(),
    Filters(by="anna"),
    Filters(table_id=1026),
    Filters(schema="a"),
    Filters(operation="create_table"),
    Filters(by="bob", catalog="main"),
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(requests_of, "GAP", GAP)
    monkeypatch.setattr(history_page, "GAP", GAP)
    monkeypatch.setattr(version_reader, "WINDOW_VERSIONS", WINDOW)
    monkeypatch.setattr(history_page, "HEADS_MAX", 30)
    monkeypatch.setattr(history_page, "WINDOWS_MAX", 2)


async def grow(one: StoredLog, draw: Random, versions: int) -> list[CatalogUpdate]:
    """Requests, a few at once, of which some have children."""
    running = [f"p{number}" for number in range(4)]
    made = []
    for number in range(versions):
        place = draw.randrange(len(running))
        procedure, parent = running[place], None
        if draw.random() < 0.3:
            procedure, parent = f"{procedure}-child", procedure
        by = "anna" if procedure[-1] in "02468d" else "bob"
        origin = Origin(by=by, request_id="r", statement=None, parent=parent)
        entry = one.history.entry()
        plain = update(one.version + 1, entry)
        told = {"procedure": procedure, "origin": origin}
        made.append(plain.model_copy(update=told))
        await one.add(made[-1])
        if draw.random() < 0.4:
            running[place] = f"p{number + 10}"
    return made


def expected(
    one: StoredLog, updates: list[CatalogUpdate], filters: Filters, transitions: bool, low: int
) -> list[CatalogChange]:
    """The whole history at once, from catalogs that the test has kept."""
    by_version = {made.version: made for made in updates}
    heads = [head_of(made) for made in updates if made.version > low]
    changes = []
    for group in put_together(heads, transitions=transitions):
        before, after = one.catalogs[group.heads[0].version - 1], one.catalogs[group.version]
        made = Group(group.root, [by_version[head.version] for head in group.heads])
        change = change_of(made, before, after, filters, transitions=transitions)
        if change is not None:
            changes.append(change)
    return changes


async def walked(
    one: StoredLog, newest: int, filters: Filters, transitions: bool, size: int
) -> list[CatalogChange]:
    """All pages; while they are read the catalog moves."""
    changes, below = list[CatalogChange](), newest + 1
    while True:
        request = PageRequest(newest, below, size, filters, transitions)
        page = HistoryPage(request, VersionReader(one.state))
        await page.read()
        changes += page.changes
        assert len(page.changes) <= size
        if page.after is None:
            return changes
        assert page.after < below
        below = page.after
        await one.grow(1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("transitions", [False, True])
async def test_given_any_log_when_walked_in_pages_then_it_is_the_history_of_the_whole_log(
    seed: int, transitions: bool
) -> None:
    draw = Random(seed)
    async with stored_log(seed) as one:
        first = one.state.follower.update(1)
        assert first is not None
        updates = [first, *await grow(one, draw, 70)]
        newest = one.version
        for filters in FILTERS:
            found = await walked(one, newest, filters, transitions, draw.choice([1, 3, 100]))
            assert found == expected(one, updates, filters, transitions, 0)


async def test_given_a_log_that_begins_later_then_the_history_ends_there() -> None:
    async with stored_log(3) as one:
        updates = await grow(one, Random(3), 60)
        newest = one.version
        await one.cut(20)
        await one.state.follower.log.load()

        found = await walked(one, newest, Filters(), True, 100)

        assert found == expected(one, updates, Filters(), True, 20)
        assert found[-1].version == 21


async def test_given_a_log_that_is_cut_between_two_pages_then_it_says_so() -> None:
    async with stored_log(3) as one:
        await grow(one, Random(3), 60)
        newest = one.version
        reader = VersionReader(one.state)
        await one.cut(newest - 10)

        with pytest.raises(Refused) as refused:
            await HistoryPage(PageRequest(newest, 20, 5, Filters(), True), reader).read()

        assert refused.value.code == "history-expired"
        assert refused.value.facts["oldest"] == newest - 10


async def test_given_a_store_that_fails_when_some_were_looked_at_then_they_are_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(*_: Any) -> Any:
        raise Unavailable("not-ready", what="the store")

    async with stored_log(3) as one:
        await grow(one, Random(3), 60)
        newest = one.version
        monkeypatch.setattr(one.state.windows, "holding", refused)
        page = HistoryPage(
            PageRequest(newest, newest + 1, 50, Filters(), True), VersionReader(one.state)
        )
        late = HistoryPage(PageRequest(newest, 20, 50, Filters(), True), VersionReader(one.state))

        await page.read()
        with pytest.raises(Unavailable):
            await late.read()

        assert [change.version for change in page.changes] == list(range(newest, newest - 5, -1))
        assert page.after == newest - 4
