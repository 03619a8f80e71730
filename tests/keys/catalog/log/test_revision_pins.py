"""Pins of revisions: what is pinned can be read, on both stores, whatever is compacted."""

import random
from collections.abc import AsyncIterator

import pytest

from keys.catalog.log.revision_pins import (
    PIN_MS,
    PIN_MS_MAX,
    HeldPin,
    RevisionPins,
    StoredRevisionPin,
    compactable,
    revision_pins,
)
from keys.model.snapshot.pins import RevisionPin, RevisionPinKey
from keys.store.etcd import EtcdKv
from keys.store.kv import Get, Kv, Put, Request
from keys.store.memory import MemoryKv
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict
from metasrv_base.ids import RandomIds
from tests.fakes.clock import FakeClock
from tests.keys.store.conformance.store import Store

DEADLINE_MS = 5_000
A = b"__setting/a"


@pytest.fixture(params=["memory", pytest.param("etcd", marks=pytest.mark.etcd)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    if request.param == "memory":
        clock = FakeClock()
        yield Store(MemoryKv(clock), clock)
        return
    etcd, prefix = request.getfixturevalue("etcd"), request.getfixturevalue("etcd_prefix")
    kv = await EtcdKv.connect([etcd], prefix)
    yield Store(kv, None)
    await kv.close()


def pins_of(kv: Kv, clock: Clock) -> RevisionPins:
    return RevisionPins(kv, clock, RandomIds(clock), "m1", DEADLINE_MS)


async def wrote(kv: Kv, value: bytes) -> int:
    answer = await kv.txn(Request(writes=(Put(A, value),)), deadline_ms=DEADLINE_MS)
    return answer.revision


async def read(kv: Kv, revision: int) -> bytes:
    page = await kv.range(Get(A), deadline_ms=DEADLINE_MS, revision=revision)
    return page.items[0].value


async def test_given_a_pin_when_compacted_up_to_it_then_its_revision_is_read_and_none_before(
    store: Store,
) -> None:
    clock = store.clock or FakeClock()
    pins = pins_of(store.kv, clock)
    old = await wrote(store.kv, b"1")
    now = await wrote(store.kv, b"2")
    pinned = await pins.take("a test", (Get(A),))
    await wrote(store.kv, b"3")
    held = pinned.held
    assert held is not None
    assert pinned.ranges[0][0].value == b"2"
    clock.advance(PIN_MS // 2)
    await pins.renew(held)
    newest = await wrote(store.kv, b"4")

    found = await revision_pins(store.kv, deadline_ms=DEADLINE_MS)
    bound = compactable(newest, found, clock.wall_ms())
    await store.kv.compact(bound, deadline_ms=DEADLINE_MS)

    assert bound == held.revision == pinned.revision == now
    assert held.mod_revision > held.revision + 1, "it was renewed"
    assert await read(store.kv, held.revision) == b"2"
    watch = store.kv.watch(A, A + b"\0", start_revision=held.revision + 1)
    assert (await anext(watch)).events[0].value == b"3", "a watch goes on behind it"
    with pytest.raises(Conflict):
        await read(store.kv, old)
    await pins.release(held)
    assert await revision_pins(store.kv, deadline_ms=DEADLINE_MS) == ()


def stored(revision: int, expires_at_ms: int, since_ms: int = 0) -> StoredRevisionPin:
    value = RevisionPin(what="w", server="s", since_ms=since_ms, expires_at_ms=expires_at_ms)
    key = RevisionPinKey("0190a7c0-0000-7000-8000-000000000001")
    return StoredRevisionPin(key, value, revision + 1, revision)


def test_given_pins_then_the_lowest_that_lives_is_the_bound() -> None:
    alive, later, expired = stored(7, 100), stored(9, 100), stored(3, 50)
    for_ever = stored(2, 10 * PIN_MS_MAX)

    assert compactable(20, (), 50) == 20
    assert compactable(20, (expired, later, alive), 50) == 7
    assert compactable(5, (alive,), 50) == 5
    assert compactable(20, (for_ever,), PIN_MS_MAX - 1) == 2
    assert compactable(20, (for_ever,), PIN_MS_MAX) == 20, "beyond the longest life"


async def test_given_a_reader_that_goes_on_for_ever_then_its_pin_ends_with_the_longest_life() -> (
    None
):
    clock = FakeClock()
    kv = MemoryKv(clock)
    pins = pins_of(kv, clock)
    await wrote(kv, b"1")
    pinned = await pins.take("a test")
    held = pinned.held
    assert held is not None
    lived_ms = 0
    while lived_ms <= PIN_MS_MAX + PIN_MS:
        (pin,) = await revision_pins(kv, deadline_ms=DEADLINE_MS)
        assert pin.lives(clock.wall_ms()) == (lived_ms < PIN_MS_MAX)
        clock.advance(PIN_MS // 2)
        lived_ms += PIN_MS // 2
        await pins.renew(held)


async def test_given_a_pin_that_was_deleted_when_renewed_then_it_does_not_come_back() -> None:
    clock = FakeClock()
    kv = MemoryKv(clock)
    pins = pins_of(kv, clock)
    held = (await pins.take("a test")).held
    await pins.release(held)
    clock.advance(PIN_MS)

    await pins.renew(held)

    assert await revision_pins(kv, deadline_ms=DEADLINE_MS) == ()


async def lived(seed: int) -> list[str]:
    """Readers come and go while a leader, which may be late, compacts as it decided; returns what
    a reader could not read."""
    draw, clock = random.Random(seed), FakeClock()
    kv = MemoryKv(clock)
    pins, faults = pins_of(kv, clock), list[str]()
    held = list[tuple[bytes, HeldPin]]()
    decided = list[int]()
    value = b"0"
    await wrote(kv, value)
    for step in range(60):
        match draw.randrange(5):
            case 0:
                value = b"%d" % step
                await wrote(kv, value)
            case 1:
                taken = (await pins.take("a test")).held
                assert taken is not None
                held.append((value, taken))
            case 2 if held:
                _, taken = held.pop(draw.randrange(len(held)))
                await pins.release(taken)
            case 3:
                bound = kv.revision
                found = await revision_pins(kv, deadline_ms=DEADLINE_MS)
                decided.append(compactable(bound, found, clock.wall_ms()))
            case 4 if decided:
                late = decided.pop(draw.randrange(len(decided)))
                await kv.compact(late, deadline_ms=DEADLINE_MS)
            case _:
                pass
        for expected, pin in held:
            try:
                if await read(kv, pin.revision) != expected:
                    faults.append("a pinned revision reads otherwise")
            except Conflict:
                faults.append("a pinned revision is compacted")
    return faults


LIVES = 60


async def test_given_late_leaders_and_readers_when_compacted_then_each_reads_what_it_pinned() -> (
    None
):
    assert [fault for seed in range(LIVES) for fault in await lived(seed)] == []


def heeds_none(bound: int, pins: object, now_ms: int) -> int:
    return bound


def above_by_one(bound: int, pins: tuple[StoredRevisionPin, ...], now_ms: int) -> int:
    return min([bound, *(pin.revision + 1 for pin in pins if pin.lives(now_ms))])


PLANTED = {
    "compaction above a pin of a revision": heeds_none,
    "compaction at the pin itself, one above what is read": above_by_one,
}


@pytest.mark.parametrize("bug", PLANTED)
async def test_given_a_planted_bug_of_compaction_when_readers_live_then_one_loses_its_revision(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.compactable", PLANTED[bug])

    assert "a pinned revision is compacted" in [
        fault for seed in range(LIVES) for fault in await lived(seed)
    ]
