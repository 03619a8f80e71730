"""Every byte that a region believes is cut or flipped: it keeps what is whole, or says corrupt.

T4. Log, manifest and data file of a region on a `MemoryDisk`. What reads the one file is asked at
every byte or bit; the whole region is opened at some of them.
"""

from collections.abc import Iterable, Iterator

import pytest

from dataplane.log.records import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    header_of,
    scan_records,
)
from dataplane.region.disk.memory_disk import Inode, MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_reader import FileReader
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.names import parse_segment
from dataplane.region.log.sealed_log import seal_segment, sealed_rows
from dataplane.region.manifests.manifest import decode_manifest
from dataplane.region.place import RegionPlace
from metasrv_base.errors import Corrupt
from tests.dataplane.region.rig import SPEC, A, Contents, by_key, contents, order, place, write

WRITES = 5
STRIDE = 61  # between the bytes at which the whole region is opened
ROWS: list[Contents] = [{f"k{number}".encode(): (number, "v" * 20)} for number in range(WRITES)]


class Damaged:
    """A region that lost its process, of which one file is replaced for each opening."""

    def __init__(self, flushed: bool) -> None:
        region = Region.create(place(disk := MemoryDisk(MemoryStore())), SPEC, epoch=1)
        for number, rows in enumerate(ROWS):
            write(region, f"s-{number}", rows)
        if flushed:
            region.maintenance.flush()
        self._files = {path: bytes(inode.data) for path, inode in disk.store.live.items()}
        self._folders = disk.store.folders

    def path(self, part: str) -> str:
        return max(path for path in self._files if part in path)

    def data(self, path: str) -> bytes:
        return self._files[path]

    def with_file(self, path: str, data: bytes) -> RegionPlace:
        store = MemoryStore()
        store.folders = dict(self._folders)
        for name, held in (self._files | {path: data}).items():
            store.live[name] = store.durable[name] = Inode(bytearray(held), len(held))
        return place(MemoryDisk(store))


@pytest.fixture(scope="module")
def logged() -> Damaged:
    return Damaged(flushed=False)


@pytest.fixture(scope="module")
def flushed() -> Damaged:
    return Damaged(flushed=True)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def one_bit_of_each_byte(start: int, end: int) -> Iterator[int]:
    """A different one from byte to byte."""
    return (8 * at + at % 8 for at in range(start, end))


def record_ends(data: bytes) -> list[int]:
    """Where the schema and each group end."""
    found = header_of(data, "wal")
    assert found is not None
    ends, at = [], HEADER_BYTES
    for record in scan_records(data, found[1], "wal").records:
        at += RECORD_HEADER_BYTES + len(record.payload)
        ends.append(at)
    return ends


def rows_of(count: int) -> Contents:
    return {key: row for rows in ROWS[:count] for key, row in rows.items()}


def kept(logged: Damaged, damaged: bytes) -> Contents:
    """Returns the contents that recovery keeps of the log: all of it is decoded."""
    path = logged.path("wal-")
    name = parse_segment(path.rpartition("/")[2])
    assert name is not None
    disk = logged.with_file(path, damaged).disk
    log = seal_segment(disk, A, SPEC.region_id, name, is_last=True)
    rows = sealed_rows(log, SPEC.columns).to_pydict()
    return dict(zip(rows["_key"], zip(rows["c1"], rows["c2"], strict=True), strict=True))


@pytest.mark.slow
def test_given_the_last_three_records_when_cut_at_any_byte_then_the_whole_ones_are_kept(
    logged: Damaged,
) -> None:
    path = logged.path("wal-")
    data = logged.data(path)
    ends = record_ends(data)

    for cut in range(ends[-4], len(data) + 1):
        whole = sum(end <= cut for end in ends) - 1
        assert kept(logged, data[:cut]) == rows_of(whole), cut
        if cut in ends or cut % STRIDE == 0:
            region = Region.open(logged.with_file(path, data[:cut]), order(1))
            assert contents(region) == rows_of(whole), cut


def flip_record(logged: Damaged, record: int, bits: Iterable[int]) -> None:
    """Damage to the last one is a torn write; before records that know of it, it is corrupt."""
    data = logged.data(logged.path("wal-"))
    for bit in bits:
        if record == WRITES - 1:
            assert kept(logged, flipped(data, bit)) == rows_of(WRITES - 1), bit
        else:
            with pytest.raises(Corrupt):
                kept(logged, flipped(data, bit))


@pytest.mark.parametrize("record", [WRITES - 1, WRITES - 2])
def test_given_a_record_when_each_byte_is_damaged_then_it_is_torn_if_last_and_else_corrupt(
    logged: Damaged, record: int
) -> None:
    ends = record_ends(logged.data(logged.path("wal-")))

    flip_record(logged, record, one_bit_of_each_byte(ends[record], ends[record + 1]))


@pytest.mark.crash
@pytest.mark.parametrize("record", [WRITES - 1, WRITES - 2])
def test_given_a_record_when_each_bit_is_flipped_then_it_is_torn_if_last_and_else_corrupt(
    logged: Damaged, record: int
) -> None:
    ends = record_ends(logged.data(logged.path("wal-")))

    flip_record(logged, record, range(8 * ends[record], 8 * ends[record + 1]))


def test_given_a_log_that_is_damaged_before_its_end_when_opened_then_it_does_not_serve(
    logged: Damaged,
) -> None:
    path = logged.path("wal-")
    data = logged.data(path)

    for bit in range(8 * HEADER_BYTES, 8 * record_ends(data)[-2], 8 * STRIDE + 1):
        with pytest.raises(Corrupt):
            Region.open(logged.with_file(path, flipped(data, bit)), order(1))


def test_given_a_manifest_when_each_byte_is_cut_or_damaged_then_it_is_corrupt(
    flushed: Damaged,
) -> None:
    path = flushed.path("manifest-")
    data = flushed.data(path)
    cuts = (data[:cut] for cut in range(len(data)))
    flips = (flipped(data, bit) for bit in one_bit_of_each_byte(0, len(data)))

    for damaged in (*cuts, *flips):
        with pytest.raises(Corrupt):
            Region.open(flushed.with_file(path, damaged), order(1))


def test_given_a_data_file_when_cut_at_any_byte_then_it_is_corrupt_before_it_serves(
    flushed: Damaged,
) -> None:
    path = flushed.path("data/")
    data = flushed.data(path)

    for cut in range(len(data)):
        with pytest.raises(Corrupt):
            Region.open(flushed.with_file(path, data[:cut]), order(1))


def flip_file(flushed: Damaged, bits: Iterable[int]) -> None:
    path = flushed.path("data/")
    data = flushed.data(path)
    (entry,) = decode_manifest(flushed.data(flushed.path("manifest-")), "here").files
    for bit in bits:
        reader = FileReader(flushed.with_file(path, flipped(data, bit)).files, entry)
        with pytest.raises(Corrupt):
            list(reader.scan(KeyRange(), ())) if bit % 2 else reader.rows_of([b"k1"], ())


def test_given_a_data_file_when_each_byte_is_damaged_then_no_read_believes_it(
    flushed: Damaged,
) -> None:
    flip_file(flushed, one_bit_of_each_byte(0, len(flushed.data(flushed.path("data/")))))


def test_given_a_damaged_data_file_when_its_region_is_read_then_it_says_corrupt(
    flushed: Damaged,
) -> None:
    path = flushed.path("data/")
    data = flushed.data(path)

    for at in range(0, len(data), STRIDE):
        region = Region.open(flushed.with_file(path, flipped(data, 8 * at)), order(1))
        with pytest.raises(Corrupt):
            contents(region)
        with pytest.raises(Corrupt):
            by_key(region, b"k1")


@pytest.mark.crash
def test_given_a_data_file_when_each_bit_is_flipped_then_no_read_believes_it(
    flushed: Damaged,
) -> None:
    flip_file(flushed, range(8 * len(flushed.data(flushed.path("data/")))))


def test_given_a_large_file_when_a_block_is_damaged_then_the_others_are_still_read() -> None:
    region = Region.create(place(disk := MemoryDisk(MemoryStore())), SPEC, epoch=1)
    rows: Contents = {f"{at:06}".encode(): (at, f"{at * 7919}") for at in range(20_000)}
    write(region, "s-1", rows)
    region.maintenance.flush()
    (path,) = (path for path in disk.store.live if "data/" in path)
    again = Region.open(place(disk), order(1))

    disk.store.live[path].data[100] ^= 1

    assert by_key(again, b"019999") == {b"019999": rows[b"019999"]}
    with pytest.raises(Corrupt):
        by_key(again, b"000000")
    with pytest.raises(Corrupt):
        contents(again)
    assert A in path
