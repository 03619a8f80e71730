"""A disk that is full, a disk that fails, and many threads at once."""

import threading
from pathlib import Path

import pytest

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.region import Region
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict, MetaError, Unavailable, Unknown
from tests.dataplane.region.rig import SPEC, batch, contents, header, order, place, write

ROUNDS = 60


class TroubledDisk:
    """Fails the operations whose name and path hold both texts."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.operation, self.path = "none", ""
        self.error: MetaError = Unavailable("storage-full")
        self.disk: Disk = MemoryDisk(self.store, self._hook)

    def _hook(self, operation: str, path: str) -> None:
        if operation == self.operation and self.path in path:
            raise self.error


@pytest.mark.parametrize("segment_is_open", [True, False])
def test_given_a_full_disk_when_written_then_nothing_is_done_and_it_goes_on_with_room(
    segment_is_open: bool,
) -> None:
    trouble = TroubledDisk()
    region = Region.create(place(trouble.disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, None)})
    if not segment_is_open:
        region.maintenance.close_log()
    trouble.operation, trouble.path = "append", "wal-"

    for _ in range(3):
        with pytest.raises(Unavailable) as refusal:
            write(region, "s-2", {b"b": (2, None)})
        assert refusal.value.code == "storage-full"

    trouble.operation = "none"
    assert contents(region) == {b"a": (1, None)}
    write(region, "s-2", {b"b": (2, None)})
    assert len([name for name in trouble.store.live if "wal-" in name]) <= 2
    assert contents(Region.open(place(trouble.disk), order(1))) == contents(region)


@pytest.mark.parametrize("is_full", [True, False])
def test_given_a_log_that_fails_when_a_group_has_a_key_twice_then_no_refusal_speaks_of_it(
    is_full: bool,
) -> None:
    trouble = TroubledDisk()
    region = Region.create(place(trouble.disk), SPEC, epoch=1)
    write(region, "s-0", {b"z": (0, None)})
    trouble.operation, trouble.path = "append", "wal-"
    if not is_full:
        trouble.error = Unavailable("not-ready")
    absent = {b"k": 0}

    first, second, third = region.writer.apply(
        [
            (header("s-1"), batch({b"k": (1, None)}, absent)),
            (header("s-2"), batch({b"k": (2, None)}, absent)),
            (header("s-3"), batch({b"z": (3, None)}, {b"z": 0})),
        ]
    )

    assert isinstance(first, Unavailable if is_full else Unknown)
    assert isinstance(second, Unavailable), "nobody knows whether the key is there"
    assert isinstance(third, Conflict), "it was there before"
    assert third.code == "already-exists"


def test_given_a_full_disk_when_a_segment_was_begun_and_flushed_over_then_the_log_goes_on() -> None:
    trouble = TroubledDisk()
    region = Region.create(place(trouble.disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, None)})
    region.maintenance.close_log()
    trouble.operation, trouble.path = "append", "wal-"
    with pytest.raises(Unavailable):
        write(region, "s-2", {b"b": (2, None)})
    trouble.operation = "none"

    region.maintenance.flush()
    write(region, "s-3", {b"c": (3, None)})

    trouble.store.crash()
    assert contents(Region.open(place(trouble.disk), order(1))) == contents(region)


@pytest.mark.parametrize("path", ["/data/", "manifest-"])
def test_given_a_full_disk_when_flushed_then_rows_stay_and_the_next_flush_brings_them(
    path: str,
) -> None:
    trouble = TroubledDisk()
    region = Region.create(place(trouble.disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, None)})
    trouble.operation, trouble.path = "append", path

    with pytest.raises(Unavailable):
        region.maintenance.flush()
    write(region, "s-2", {b"b": (2, None)})

    trouble.operation = "none"
    assert region.maintenance.needs_flush()
    assert region.maintenance.flush()
    assert contents(region) == {b"a": (1, None), b"b": (2, None)}
    assert contents(Region.open(place(trouble.disk), order(1))) == contents(region)


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_given_a_log_that_fails_when_written_then_it_is_unknown_and_the_region_stops(
    operation: str,
) -> None:
    trouble = TroubledDisk()
    region = Region.create(place(trouble.disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, None)})
    trouble.operation, trouble.path = operation, "wal-"
    trouble.error = Unknown("outcome-unknown", errno="EIO")

    with pytest.raises(Unknown):
        write(region, "s-2", {b"b": (2, None)})

    trouble.operation = "none"
    with pytest.raises(Unavailable):
        write(region, "s-3", {b"c": (3, None)})
    again = Region.open(place(trouble.disk), order(1))
    assert write(again, "s-2", {b"b": (2, None)}).version > 0
    trouble.store.crash()
    again = Region.open(place(trouble.disk), order(1))
    assert contents(again) == {b"a": (1, None), b"b": (2, None)}


def test_given_threads_when_they_write_flush_and_read_then_no_batch_is_seen_in_part(
    tmp_path: Path,
) -> None:
    limits = RegionLimits(memtable_bytes=20_000)
    region = Region.create(place(LocalDisk(), str(tmp_path / "r"), limits=limits), SPEC, epoch=1)
    write(region, "first", dict.fromkeys((b"x", b"y"), (0, None)))
    ended = threading.Event()
    failures: list[Exception] = []

    def guarded(work: threading.Event, step: object) -> None:
        assert callable(step)
        try:
            while not work.is_set():
                step()
        except Exception as error:  # noqa: BLE001 - a task's root: handed to the test
            failures.append(error)

    def read() -> None:
        seen = contents(region)
        assert seen[b"x"] == seen[b"y"]
        rows = region.reader.get([b"x", b"y"]).column("c1").to_pylist()
        assert rows[0] == rows[1] >= seen[b"x"][0]

    steps = (read, region.maintenance.flush)
    threads = [threading.Thread(target=guarded, args=(ended, step)) for step in steps]
    for thread in threads:
        thread.start()
    for number in range(1, ROUNDS + 1):
        write(region, f"s-{number}", dict.fromkeys((b"x", b"y"), (number, "v" * 500)))
    ended.set()
    for thread in threads:
        thread.join()

    assert failures == []
    assert contents(region)[b"x"] == (ROUNDS, "v" * 500)


def test_given_a_fault_behind_a_manifest_when_it_was_published_then_the_region_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its files in memory are not those of the manifest, by which others are removed."""
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x")})

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(RegionContent, "follow", fail)
    with pytest.raises(MemoryError):
        region.maintenance.flush()
    monkeypatch.undo()

    assert region.stopped is not None
    with pytest.raises(MetaError):
        region.maintenance.flush()
    region.close()
    assert contents(Region.open(place(disk), order(1))) == {b"a": (1, "x")}
