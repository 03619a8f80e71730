"""The node journal: torn tails are left out, damage is loud, and what was synced is kept."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from base.errors import Corrupt, Unavailable
from dataplane.datanode.journal import open_journal
from dataplane.datanode.journal_format import (
    Dropped,
    Executed,
    Joined,
    Opened,
    Record,
    StoredError,
    TermSeen,
    decode,
    encode,
)
from dataplane.region.memory_disk import MemoryDisk, MemoryStore

GOLDEN = Path(__file__).parent.parent / "golden" / "node" / "journal.v1.txt"
REGION = 1024 << 32
RECORDS: list[Record] = [
    Opened(node_id="dn-1"),
    Joined(cluster_id="c1"),
    TermSeen(term=7),
    Executed(region_id=str(REGION), term=7, number=1, op="schema", floor_version=5 << 20),
    Executed(
        region_id=str(REGION + 1),
        term=7,
        number=2,
        op="open",
        error=StoredError(code="stale-epoch", facts={"epoch": 3, "found": 2}),
    ),
    Dropped(region_id=str(REGION + 2)),
]


def test_given_every_kind_of_record_when_encoded_then_as_in_the_golden_file() -> None:
    assert encode(RECORDS) == GOLDEN.read_bytes()
    assert decode(GOLDEN.read_bytes()) == RECORDS


def test_given_a_journal_of_before_floors_when_decoded_then_its_orders_raised_none() -> None:
    before = decode(GOLDEN.with_name("journal_without_floors.v1.txt").read_bytes())

    assert [getattr(record, "floor_version", None) for record in before] == [None] * 6
    assert before[3] == Executed(region_id=str(REGION), term=7, number=1, op="create")


def test_given_a_cut_at_every_byte_when_decoded_then_exactly_the_whole_records() -> None:
    data = encode(RECORDS)
    ends = [len(encode(RECORDS[:count])) for count in range(len(RECORDS) + 1)]

    for cut in range(len(data) + 1):
        whole = sum(end <= cut for end in ends) - 1
        assert decode(data[:cut]) == RECORDS[:whole]


def test_given_a_flipped_bit_when_decoded_then_the_records_before_it_or_corrupt() -> None:
    data = encode(RECORDS)
    last = len(encode(RECORDS[:-1]))

    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        if bit // 8 >= last:
            assert decode(bytes(damaged)) == RECORDS[:-1]
        else:
            with pytest.raises(Corrupt):
                decode(bytes(damaged))


def test_given_a_record_of_the_future_when_decoded_then_corrupt() -> None:
    line = encode([Opened(format=2, node_id="dn-1")])

    with pytest.raises(Corrupt):
        decode(line)


async def test_given_a_journal_when_opened_again_then_the_same_state() -> None:
    store = MemoryStore()
    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    await journal.commit(RECORDS[1:])

    store.crash()

    assert open_journal(MemoryDisk(store), "/n", "dn-1").state == journal.state


async def test_given_a_crash_anywhere_in_an_opening_when_opened_then_nothing_is_lost() -> None:
    store, steps = await filled(), 0
    wanted = open_journal(MemoryDisk(store), "/n", "dn-1").state

    finished = False
    while not finished:
        steps += 1
        store = await filled()
        try:
            open_journal(MemoryDisk(store, stop_after(steps)), "/n", "dn-1")
            finished = True
        except Stopped:
            store.crash(kept_bytes=steps % 3, kept_names=bool(steps % 2))
        assert open_journal(MemoryDisk(store), "/n", "dn-1").state == wanted
    assert steps > 8


async def test_given_a_higher_term_when_rewritten_then_older_answers_are_left_out() -> None:
    store = MemoryStore()
    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    await journal.commit([*RECORDS[1:], TermSeen(term=8)])

    open_journal(MemoryDisk(store), "/n", "dn-1")
    state = open_journal(MemoryDisk(store), "/n", "dn-1").state

    assert (state.term, state.executed, state.dropped) == (8, {}, {REGION + 2})


async def test_given_no_space_when_there_is_some_again_then_what_was_answered_and_goes_on() -> None:
    store, disk = MemoryStore(), Full()
    journal = open_journal(MemoryDisk(store, disk), "/n", "dn-1")
    await journal.commit(RECORDS[1:])

    disk.full = True
    for _ in range(2):
        with pytest.raises(Unavailable):
            await journal.commit([TermSeen(term=9)])
    assert journal.state.term == 7
    disk.full = False
    await journal.commit([Dropped(region_id=str(REGION + 9))])
    await journal.commit([TermSeen(term=8)])
    store.crash()

    assert open_journal(MemoryDisk(store), "/n", "dn-1").state == journal.state
    assert (journal.state.term, journal.state.dropped) == (8, {REGION + 2, REGION + 9})


async def test_given_a_write_that_nobody_waits_for_then_no_file_is_begun_before_it_ends() -> None:
    store, disk = MemoryStore(), Full()
    journal = open_journal(MemoryDisk(store, disk), "/n", "dn-1")
    done: list[str] = []
    entered, may_end = threading.Event(), threading.Event()

    def slow_once(operation: str, path: str) -> None:
        if operation == "append" and not entered.is_set():
            entered.set()
            may_end.wait()
        done.append(operation)

    disk.then = slow_once
    async with asyncio.TaskGroup() as tasks:
        left = tasks.create_task(journal.commit([TermSeen(term=8)]))
        await asyncio.to_thread(entered.wait)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        tasks.create_task(journal.commit([TermSeen(term=9)]))
        await asyncio.to_thread(lambda: None)  # its thread is at work
        may_end.set()

    assert done[:2] == ["append", "sync"]
    assert open_journal(MemoryDisk(store), "/n", "dn-1").state.term == 9


@pytest.mark.parametrize("torn", [0, 1, 7])
async def test_given_a_torn_write_when_going_on_then_its_tail_is_behind_no_record(
    torn: int,
) -> None:
    store, disk = MemoryStore(), Full()
    journal = open_journal(MemoryDisk(store, disk), "/n", "dn-1")
    (path,) = [path for path in store.live if "journal" in path]

    disk.full = True
    with pytest.raises(Unavailable):
        await journal.commit([TermSeen(term=9)])
    store.live[path].data += encode([TermSeen(term=9)])[:torn]
    disk.full = False
    await journal.commit([TermSeen(term=8)])

    assert open_journal(MemoryDisk(store), "/n", "dn-1").state.term == 8


async def test_given_a_crash_anywhere_in_going_on_when_opened_then_nothing_answered_is_lost() -> (
    None
):
    steps, finished = 0, False
    while not finished:
        steps += 1
        store, disk = await filled(), Full()
        journal = open_journal(MemoryDisk(store, disk), "/n", "dn-1")
        before = journal.state.records()
        new = Dropped(region_id=str(REGION + 9))
        disk.full = True
        with pytest.raises(Unavailable):
            await journal.commit([TermSeen(term=8)])
        disk.full, disk.then = False, stop_after(steps)
        try:
            await journal.commit([new])
            finished = True
        except Stopped:
            store.crash(kept_bytes=steps % 3, kept_names=bool(steps % 2))

        after = open_journal(MemoryDisk(store), "/n", "dn-1").state.records()

        assert [record for record in after if record != new] == before
        assert not finished or new in after
    assert steps > 6


class Stopped(BaseException):
    """The process ends between two operations."""


def stop_after(steps: int) -> "Stopper":
    return Stopper(steps)


class Stopper:
    def __init__(self, steps: int) -> None:
        self._left = steps

    def __call__(self, operation: str, path: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise Stopped


class Full:
    """A disk that takes nothing while it is full; `then` says what else happens."""

    def __init__(self) -> None:
        self.full = False
        self.then: Callable[[str, str], None] = lambda operation, path: None

    def __call__(self, operation: str, path: str) -> None:
        if self.full and operation in ("append", "create"):
            raise Unavailable("storage-full", path=path)
        self.then(operation, path)


async def filled(records: Iterable[Record] = tuple(RECORDS[1:])) -> MemoryStore:
    store = MemoryStore()
    await open_journal(MemoryDisk(store), "/n", "dn-1").commit(records)
    return store
