"""A watch whose streams break anywhere delivers each revision once; a planted bug does not."""

from collections.abc import AsyncGenerator
from random import Random
from typing import Any, cast

import pytest
from aetcd import rpc

from keys.store import etcd_watch
from keys.store.etcd_watch import Assembler, WatchedRange, WatchSource
from metasrv_base.errors import Unavailable

PREFIX = b"/p/"
REVISIONS = tuple(range(5, 25))
RUNS = 50


class ResumedAtRev(Assembler):
    """Goes on at the revision that came last, instead of after it."""

    def __init__(self, watched: WatchedRange, start_revision: int) -> None:
        super().__init__(watched, max(REVISIONS[0], start_revision - 1))


class Nobody:
    """A caller without a name: it needs no token."""

    async def metadata(self, *, deadline_ms: int) -> tuple[()]:
        return ()


def answer(revision: int) -> rpc.WatchResponse:
    value = rpc.KeyValue(key=PREFIX + b"a", value=b"v", mod_revision=revision)
    return rpc.WatchResponse(events=[rpc.Event(kv=value)])


async def delivered(monkeypatch: pytest.MonkeyPatch, seed: int) -> list[int]:
    """Returns the revisions that a watch delivers while its streams break where *seed* says."""
    draw = Random(seed)

    async def one_stream(
        _source: WatchSource, _metadata: object, assembler: Assembler
    ) -> AsyncGenerator[Any, None]:
        """As etcd: from one revision before what is wanted, until the stream breaks."""
        for revision in REVISIONS:
            if revision < assembler.next_revision - 1:
                continue
            for found in assembler.feed(answer(revision)):
                yield found
            if draw.random() < 0.3:
                raise Unavailable(call="watch", reason="broken")

    monkeypatch.setattr(etcd_watch, "_one_stream", one_stream)
    monkeypatch.setattr(etcd_watch, "REOPEN_DELAY_MS", 0)
    found: list[int] = []
    watched = WatchedRange(PREFIX, b"/p0", PREFIX)
    source = WatchSource(None, cast(Any, Nobody()), watched)
    async for each in etcd_watch.follow(source, REVISIONS[0]):
        found.append(each.revision)
        if each.revision == REVISIONS[-1]:
            break
    return found


async def test_given_streams_that_break_anywhere_then_each_revision_comes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seed in range(RUNS):
        assert await delivered(monkeypatch, seed) == list(REVISIONS)


async def test_given_a_watch_resumed_at_rev_when_streams_break_then_a_repeat_finds_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(etcd_watch, "Assembler", ResumedAtRev)

    runs = 1
    while (found := await delivered(monkeypatch, runs)) == list(REVISIONS):
        runs += 1
        assert runs <= RUNS

    with capsys.disabled():
        print(f"\nwatch resumed at rev: run {runs}: {len(found) - len(REVISIONS)} repeats", end="")
    assert len(found) > len(REVISIONS)
    assert sorted(set(found)) == list(REVISIONS)
