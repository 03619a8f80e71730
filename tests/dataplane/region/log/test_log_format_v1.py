"""Logs of before statements were logged in groups: they are replayed, and nothing writes them."""

from pathlib import Path

import pytest

from dataplane.log.records import HEADER_BYTES
from dataplane.region.disk.memory_disk import Inode, MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from dataplane.region.log.log_format_v1 import decode_batch, scan_records
from dataplane.region.log.logged_group import LoggedStatement
from metasrv_base.errors import Corrupt
from tests.dataplane.region.entries import INDEX, OTHER, entries_of
from tests.dataplane.region.rig import A, B, contents, order, place, write

GOLDEN = Path(__file__).parents[3] / "golden" / "region"
PAYLOADS = (b"one", b"the second record", b"", b"four\xffREC", b"the fifth and last")
HEAD_BYTES = 32


def stored() -> MemoryDisk:
    """A region as it was left: three statements in its log, rows and entries."""
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder(A)
    for file in sorted((GOLDEN / "log_of_format_1").iterdir()):
        data = file.read_bytes()
        store.live[f"{A}/{file.name}"] = Inode(bytearray(data), len(data))
        store.durable[f"{A}/{file.name}"] = store.live[f"{A}/{file.name}"]
    return disk


@pytest.mark.parametrize("root", [A, B])
def test_given_a_log_of_format_1_when_opened_then_all_of_it_is_there_and_it_goes_on(
    root: str,
) -> None:
    disk = stored()

    region = Region.open(place(disk, root), order(2, *([] if root == A else [A])))

    rows = {b"b": (2, "w"), b"c": (3, "y"), b"d": (4, None)}
    assert contents(region) == rows
    assert entries_of(region) == {b"w-b": b"b", b"x-a": b"a"}
    assert region.stats().sequence == 3
    assert write(region, "s-3", {b"never": (0, None)}).repeated
    write(region, "s-4", {b"e": (5, None)})
    again = Region.open(place(disk, root), order(2, *([] if root == A else [A])))
    assert contents(again) == rows | {b"e": (5, None)}
    assert again.stats().sequence == 4


def test_given_the_golden_segment_when_read_then_all_is_there() -> None:
    scan = scan_records((GOLDEN / "segment.v1.bin").read_bytes(), "wal-3-2-1")

    assert tuple(bytes(record.payload) for record in scan.records) == PAYLOADS
    assert [record.position for record in scan.records] == [(3, at) for at in range(1, 6)]


def test_given_a_segment_when_cut_or_damaged_then_a_tail_is_torn_and_the_rest_corrupt() -> None:
    data = (GOLDEN / "segment.v1.bin").read_bytes()
    last = len(data) - HEAD_BYTES - len(PAYLOADS[-1])

    for cut in range(last, len(data)):
        assert len(scan_records(data[:cut], "here").records) == 4
    for at in range(HEADER_BYTES, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1
        if at >= last:
            assert len(scan_records(bytes(damaged), "here").records) == 4
        else:
            with pytest.raises(Corrupt):
                scan_records(bytes(damaged), "here")


def test_given_the_golden_batches_when_read_then_they_are_understood() -> None:
    plain = decode_batch((GOLDEN / "batch.v1.bin").read_bytes(), "golden")
    mixed = decode_batch((GOLDEN / "batch_with_entries.v1.bin").read_bytes(), "golden")

    assert plain.statements == (LoggedStatement("s-1", 7 << 20, 2, schema_version=3),)
    assert plain.parts[0].rows.column("_version").to_pylist() == [7 << 20] * 2
    assert plain.parts[0].rows.column("c1").to_pylist() == [1, None]
    assert [(part.family, part.keys.values) for part in mixed.parts] == [
        (ROWS, [b"a", b"b"]),
        (INDEX, [b"x-a", b"w-b"]),
        (OTHER, [b"1-a", b"2-b"]),
    ]


@pytest.mark.parametrize("length", [0, 3, 4, 20, 200])
def test_given_a_cut_payload_when_decoded_then_it_is_corrupt(length: int) -> None:
    with pytest.raises(Corrupt):
        decode_batch((GOLDEN / "batch.v1.bin").read_bytes()[:length], "here")
