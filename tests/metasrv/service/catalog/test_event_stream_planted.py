"""Planted bugs in the stream of events; found by watchers that come and go, against reads."""

from dataclasses import replace
from typing import Any

import pytest

from metasrv.service.catalog import event_stream
from metasrv.service.events import catalog_events, event_lines
from metasrv.service.events.event_filter import scopes_of
from metasrv.service.state.state import ServerState
from tests.metasrv.service.catalog import event_watcher
from tests.metasrv.service.catalog.event_watcher import follow_any_log

BEGUN, FLUSH = event_stream.begun, event_stream._flush
Plant = tuple[object, str, Any]


async def one_further(state: ServerState, *asked: Any) -> event_stream.EventWatch:
    """A watcher goes on behind the version that follows its own."""
    watch = await BEGUN(state, *asked)
    newest = state.follower.catalog.version
    return replace(watch, position=min(newest, watch.position + 1))


async def the_last_again(state: ServerState, *asked: Any) -> event_stream.EventWatch:
    """A watcher is told its last version again."""
    watch = await BEGUN(state, *asked)
    return replace(watch, position=max(0, watch.position - 1))


async def twice(state: ServerState, position: int, wanted: Any) -> tuple[bytes, int]:
    """The events of one call are sent again."""
    flush, position = await FLUSH(state, position, wanted)
    return flush + flush, position


def no_elements(*given: Any) -> Any:
    return iter(())


def first_name(event: Any) -> Any:
    """A rename is told to those alone who follow the new name."""
    return scopes_of(event)[:1]


PLANTED: dict[str, Plant] = {
    "a version skipped at resume": (event_watcher, "begun", one_further),
    "a version told again at resume": (event_watcher, "begun", the_last_again),
    "an event sent twice": (event_stream, "_flush", twice),
    "a table that changes without its columns": (catalog_events, "element_events", no_elements),
    "a rename out of a filter that is not told": (event_lines, "scopes_of", first_name),
}


async def follow_all() -> None:
    for seed in range(10, 40):
        await follow_any_log(seed)


@pytest.mark.parametrize("bug", PLANTED)
async def test_given_a_planted_bug_when_watchers_come_and_go_then_reads_show_other_tables(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, planted = PLANTED[bug]
    monkeypatch.setattr(event_stream, "BEAT_MS", 0)
    monkeypatch.setattr(where, name, planted)

    with pytest.raises((AssertionError, KeyError)):
        await follow_all()
