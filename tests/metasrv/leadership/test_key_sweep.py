"""20,000 idempotency keys: the short form of `benchmarks.service.event_loop keys`, counted."""

from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest

from keys.model.records import Idempotency, IdempotencyKey
from keys.store.kv import Put, Request
from keys.store.readable import readable
from keys.value import encode
from metasrv.leadership import key_sweep
from metasrv.leadership.key_sweep import PAGES_MAX, ROWS_MAX, KeySweep
from metasrv.leadership.retention import KEPT_MS_MIN
from metasrv_base.ids import uuid7
from tests.metasrv.api.rig import DEADLINE_MS, Server, leader
from tests.metasrv.leadership.counted_store import CountingKv, idempotency_keys, kv_of

SCATTER = 2_654_435_761  # odd: its multiples are in no order


class Living:
    """Counts the decoded keys that are alive at the same time."""

    def __init__(self) -> None:
        self._now: set[Any] = set()
        self.most = 0

    def readable(self, *given: Any) -> Iterator[Any]:
        for row in readable(*given):
            self._now.add(ref(row.value, self._now.discard))
            self.most = max(self.most, len(self._now))
            yield row


async def write_keys(one: Server, count: int, at_ms: int) -> None:
    """Keys that lead to nothing, 100 in a transaction."""
    for first in range(0, count, 100):
        puts = []
        for number in range(first, first + 100):
            procedure = uuid7(at_ms, number.to_bytes(10, "big"))
            known = Idempotency(procedure=procedure, fingerprint="f" * 64, at_ms=at_ms)
            digest = f"{number * SCATTER % 2**32:08x}".ljust(64, "0")
            puts.append(Put(bytes(IdempotencyKey(digest)), encode(known)))
        await one.kv.txn(Request(writes=tuple(puts)), deadline_ms=DEADLINE_MS)


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
async def test_given_many_keys_that_lead_to_nothing_then_each_look_holds_a_page_and_all_go(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = Living()
    monkeypatch.setattr(key_sweep, "readable", living.readable)
    async with leader(nodes=0, make_kv=CountingKv) as one:
        await write_keys(one, count, one.clock.wall_ms() - KEPT_MS_MIN - 1)
        sweep, looks = KeySweep(one.term), list[int]()

        while idempotency_keys(one):
            kv_of(one).forget()
            looks.append(await sweep.tidy(one.clock.wall_ms()))
            assert len(kv_of(one).pages) <= PAGES_MAX
            assert max(kv_of(one).pages) <= ROWS_MAX
            assert len(kv_of(one).commits) <= PAGES_MAX

        assert sum(looks) == count
        assert len(looks) <= count // (PAGES_MAX * ROWS_MAX) + 2  # it begins anywhere
        assert living.most <= 2 * ROWS_MAX
