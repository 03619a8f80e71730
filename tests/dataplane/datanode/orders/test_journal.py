"""The node's journal: what was synced is kept, whatever stops the node, and nothing is made up."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count

import pytest

from dataplane.datanode.orders.journal import open_journal
from dataplane.datanode.orders.journal_format import (
    Adopted,
    Dropped,
    Executed,
    Joined,
    JournalError,
    Record,
    TermSeen,
)
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Corrupt, Unavailable, Unknown
from tests.dataplane.datanode.orders.journal_records import RECORDS, REGION, V1
from tests.dataplane.region.power_loss import DEVICES, FailingSync

NO_ROOM = JournalError(code="unsupported", facts={})


async def test_given_a_journal_when_opened_again_then_the_same_state() -> None:
    store = MemoryStore()
    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    await journal.commit(RECORDS[1:])

    store.crash()

    assert open_journal(MemoryDisk(store), "/n", "dn-1").state == journal.state


async def test_given_a_journal_of_lines_when_opened_then_its_state_goes_on_in_the_next_file() -> (
    None
):
    store = of_lines()

    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    await journal.commit([Dropped(region_id=str(REGION + 9))])
    assert sorted(store.live) == ["/n/node/journal-2"]
    store.crash()

    state = open_journal(MemoryDisk(store), "/n", "dn-1").state
    assert state == journal.state
    assert state.dropped == {REGION + 2, REGION + 9}


@pytest.mark.parametrize("left", [0, 1, 43, 44, 100])
async def test_given_a_file_without_its_beginning_when_opened_then_no_node_forgets_its_tombstones(
    left: int,
) -> None:
    store = await filled()
    (path,) = store.live
    del store.live[path].data[left:]

    with pytest.raises(Corrupt):
        open_journal(MemoryDisk(store), "/n", "dn-1")


async def test_given_a_crash_at_any_operation_of_commits_then_what_was_answered_is_there() -> None:
    """Whatever the device kept of the last write."""
    of_a_tail = [(kept, True, None) for kept in (0, 1, 50, 200)]
    for device in [*DEVICES.values(), *of_a_tail, *((0, True, seed) for seed in range(10, 16))]:
        steps, finished = 0, False
        while not finished:
            steps += 1
            store, disk, answered = MemoryStore(), Full(), list[int]()
            journal = open_journal(MemoryDisk(store, disk), "/n", "dn-1")
            disk.then = stop_after(steps)
            try:
                for number in range(REGION, REGION + 4):
                    await journal.commit([Dropped(region_id=str(number))])
                    answered.append(number)
                finished = True
            except Stopped:
                store.crash(*device)

            dropped = open_journal(MemoryDisk(store), "/n", "dn-1").state.dropped

            assert dropped >= set(answered)
            assert len(dropped) <= len(answered) + 1
        assert steps == 4 * 3, "append, sync, and the mark of each"


@pytest.mark.parametrize("device", DEVICES)
async def test_given_any_sync_that_fails_when_it_goes_on_and_the_power_fails_then_nothing_is_lost(
    device: str,
) -> None:
    for fails_at in count(1):
        failing, answered = FailingSync(store := MemoryStore(), fails_at), set[int]()
        while len(answered) < 4:
            with suppress(Unknown, Unavailable):
                journal = open_journal(failing.disk, "/n", "dn-1")
                while len(answered) < 4:
                    number = REGION + len(answered)
                    with suppress(Unavailable):
                        await journal.commit([Dropped(region_id=str(number))])
                        answered.add(number)
        store.crash(*DEVICES[device])

        assert open_journal(MemoryDisk(store), "/n", "dn-1").state.dropped == answered
        if failing.syncs < fails_at:
            break

    assert fails_at > 6


async def test_given_a_mark_that_cannot_be_written_then_the_next_commit_begins_a_file() -> None:
    store, disk = MemoryStore(), Full()
    journal = open_journal(MemoryDisk(store, disk), "/n", "dn-1")
    appended: list[str] = []

    def third(operation: str, path: str) -> None:
        appended.append(operation)
        if appended == ["append", "sync", "append"]:
            raise Unavailable("storage-full", path=path)

    disk.then = third
    await journal.commit([Dropped(region_id=str(REGION))])
    await journal.commit([Dropped(region_id=str(REGION + 1))])
    assert sorted(store.live) == ["/n/node/journal-2"]
    store.crash()

    opened = open_journal(MemoryDisk(store), "/n", "dn-1")
    assert opened.state.dropped == {REGION, REGION + 1}


@pytest.mark.parametrize("device", DEVICES)
async def test_given_a_crash_anywhere_in_an_opening_of_lines_then_nothing_is_lost(
    device: str,
) -> None:
    steps, finished = 0, False
    wanted = open_journal(MemoryDisk(of_lines()), "/n", "dn-1").state
    while not finished:
        steps += 1
        store = of_lines()
        try:
            open_journal(MemoryDisk(store, stop_after(steps)), "/n", "dn-1")
            finished = True
        except Stopped:
            store.crash(*DEVICES[device])
        assert open_journal(MemoryDisk(store), "/n", "dn-1").state == wanted
    assert steps > 8


@pytest.mark.parametrize("device", DEVICES)
async def test_given_a_crash_anywhere_in_an_opening_when_opened_then_nothing_is_lost(
    device: str,
) -> None:
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
            store.crash(*DEVICES[device])
        assert open_journal(MemoryDisk(store), "/n", "dn-1").state == wanted
    assert steps > 8


async def test_given_a_higher_term_when_rewritten_then_older_answers_are_left_out() -> None:
    store = MemoryStore()
    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    await journal.commit([*RECORDS[1:], TermSeen(term=8)])

    open_journal(MemoryDisk(store), "/n", "dn-1")
    state = open_journal(MemoryDisk(store), "/n", "dn-1").state

    assert (state.term, state.executed, state.dropped) == (8, {}, {REGION + 2})


async def test_given_tombstones_of_two_clusters_when_rewritten_then_each_is_still_of_its_own() -> (
    None
):
    """And one of before is gone once the region was made again."""
    store = MemoryStore()
    journal = open_journal(MemoryDisk(store), "/n", "dn-1")
    await journal.commit([Joined(cluster_id="c1"), *(Dropped(region_id=str(n)) for n in (1, 2, 3))])
    await journal.commit([Adopted(cluster_id="c2", from_cluster_id="c1"), TermSeen(term=1)])
    refused = Executed(region_id="1", term=1, number=1, op="create", error=NO_ROOM)
    made = Executed(region_id="2", term=1, number=1, op="create")
    await journal.commit([refused, made, Dropped(region_id="4")])

    for _ in range(2):
        store.crash()
        state = open_journal(MemoryDisk(store), "/n", "dn-1").state

        assert (state.dropped_before, state.dropped) == ({1, 3}, {4})
        assert state == journal.state


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

    assert done[:3] == ["append", "sync", "append"], "the last one says that the first is durable"
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
    store.live[path].data += b"\xffREC\x09"[:torn] + bytes(torn)
    disk.full = False
    await journal.commit([TermSeen(term=8)])

    assert open_journal(MemoryDisk(store), "/n", "dn-1").state.term == 8


@pytest.mark.parametrize("device", DEVICES)
async def test_given_a_crash_anywhere_in_going_on_when_opened_then_nothing_answered_is_lost(
    device: str,
) -> None:
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
            store.crash(*DEVICES[device])

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


def of_lines() -> MemoryStore:
    """A node's root with a journal of the format of before."""
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/n/node")
    file = disk.create("/n/node/journal-1")
    file.append(V1.read_bytes())
    file.sync()
    disk.sync_folder("/n/node")
    return store
