"""A log segment cut at every byte and flipped in every bit keeps exactly what it should (T4)."""

import zlib
from pathlib import Path

import pytest

from base.errors import Corrupt
from dataplane.region.batch_format import BatchHead, LoggedBatch, decode_batch, encode_batch
from dataplane.region.log_format import (
    BATCH,
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    Record,
    SegmentHeader,
    SegmentScan,
    encode_header,
    encode_record,
    scan_segment,
)
from dataplane.region.names import Numbered
from tests.region.rig import REGION_ID, batch

GOLDEN = Path(__file__).parent.parent / "golden" / "region"
HEADER = SegmentHeader(REGION_ID, Numbered(3, 2, 1))
NAME = "wal-3-2-1"
PAYLOADS = (b"one", b"the second record", b"", b"four\xffREC", b"the fifth and last")


def group(sequence: int, durable: int, *payloads: bytes) -> bytes:
    """One write: all its records know the same bytes to be durable."""
    return b"".join(
        encode_record(Record(BATCH, sequence + at, durable, payload))
        for at, payload in enumerate(payloads)
    )


def segment(payloads: tuple[bytes, ...] = PAYLOADS) -> bytes:
    """Each record in a group of its own."""
    data = encode_header(HEADER)
    for sequence, payload in enumerate(payloads, start=1):
        data += group(sequence, len(data), payload)
    return data


def ends() -> list[int]:
    """Where the header and each record end."""
    at = [HEADER_BYTES]
    for payload in PAYLOADS:
        at.append(at[-1] + RECORD_HEADER_BYTES + len(payload))
    return at


def payloads_of(scan: SegmentScan) -> tuple[bytes, ...]:
    return tuple(record.payload for record in scan.records)


def test_given_a_segment_when_written_today_then_it_is_the_golden_file() -> None:
    assert segment() == (GOLDEN / "segment.bin").read_bytes()


def test_given_the_golden_segment_when_read_then_all_is_there() -> None:
    scan = scan_segment((GOLDEN / "segment.bin").read_bytes(), NAME)

    assert scan.header == HEADER
    assert payloads_of(scan) == PAYLOADS
    assert [record.sequence for record in scan.records] == [1, 2, 3, 4, 5]
    assert scan.length == len(segment())


def test_given_a_segment_when_cut_at_any_byte_then_the_whole_records_before_are_kept() -> None:
    data, boundaries = segment(), ends()

    for cut in range(len(data) + 1):
        scan = scan_segment(data[:cut], NAME)

        whole = sum(end <= cut for end in boundaries)
        assert payloads_of(scan) == PAYLOADS[: max(whole - 1, 0)], cut
        assert scan.length == (boundaries[whole - 1] if whole else 0)


@pytest.mark.parametrize("index", range(len(PAYLOADS)))
def test_given_a_record_when_any_bit_flips_then_it_is_torn_if_last_and_corrupt_if_not(
    index: int,
) -> None:
    data, start, end = segment(), ends()[index], ends()[index + 1]

    for bit in range(start * 8, end * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        if index == len(PAYLOADS) - 1:
            assert payloads_of(scan_segment(bytes(damaged), NAME)) == PAYLOADS[:-1]
        else:
            with pytest.raises(Corrupt):
                scan_segment(bytes(damaged), NAME)


def test_given_a_header_when_any_bit_flips_then_the_segment_is_corrupt() -> None:
    data = segment()

    for bit in range(HEADER_BYTES * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Corrupt):
            scan_segment(bytes(damaged), NAME)


def test_given_a_group_when_its_first_record_was_torn_then_its_later_ones_prove_nothing() -> None:
    # A device may keep the end of one unsynced write and lose its beginning.
    data = encode_header(HEADER)
    data += group(1, len(data), b"acknowledged")
    torn = bytearray(data + group(2, len(data), b"in flight", b"in flight too"))
    torn[len(data) + RECORD_HEADER_BYTES] ^= 1

    scan = scan_segment(bytes(torn), NAME)

    assert payloads_of(scan) == (b"acknowledged",)
    assert scan.length == len(data)


def test_given_garbage_behind_the_records_when_read_then_it_is_a_torn_tail() -> None:
    data = segment()

    scan = scan_segment(data + b"\xffREC" * 50 + bytes(100), NAME)

    assert payloads_of(scan) == PAYLOADS
    assert scan.length == len(data)


def test_given_a_newer_format_when_read_then_it_is_refused_loudly() -> None:
    data = bytearray(encode_header(HEADER))
    data[6] = 2
    data[-4:] = zlib.crc32(data[:-4]).to_bytes(4, "little")

    with pytest.raises(Corrupt):
        scan_segment(bytes(data), NAME)


def test_given_a_batch_when_logged_and_read_then_it_is_the_same() -> None:
    head = BatchHead(version=7 << 20, statement_id="s-1", schema_version=3)
    rows = batch({b"a": (1, "x"), b"b": None})

    read = decode_batch(encode_batch(LoggedBatch(head, rows)), "here")

    assert read.head == head
    assert read.rows.equals(rows)


def test_given_the_golden_batch_when_read_then_it_is_understood() -> None:
    read = decode_batch((GOLDEN / "batch.bin").read_bytes(), "golden")

    assert read.head == BatchHead(version=7 << 20, statement_id="s-1", schema_version=3)
    assert read.rows.equals(batch({b"a": (1, "x"), b"b": None}))


@pytest.mark.parametrize("length", [0, 3, 4, 20, 200])
def test_given_a_cut_payload_when_decoded_then_it_is_corrupt(length: int) -> None:
    head = BatchHead(version=1, statement_id="s", schema_version=1)
    payload = encode_batch(LoggedBatch(head, batch({b"a": (1, "x")})))

    with pytest.raises(Corrupt):
        decode_batch(payload[:length], "here")
