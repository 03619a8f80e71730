"""A log segment cut at every byte and flipped in every bit keeps exactly what it should."""

import zlib
from pathlib import Path

import pytest

from dataplane.log.records import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    LogPosition,
    Record,
    RecordType,
    SegmentHeader,
    SegmentScan,
    encode_header,
    encode_record,
    refuse_unknown,
    salt_of,
    scan_records,
)
from dataplane.region.format.names import Numbered
from metasrv_base.errors import Corrupt
from tests.dataplane.region.rig import REGION_ID

GOLDEN = Path(__file__).parents[2] / "golden" / "region"
HEADER = SegmentHeader(REGION_ID, Numbered(3, 2, 1))
SALT = salt_of(HEADER)
NAME = "wal-3-2-1"
PAYLOADS = (b"one", b"the second record", b"", b"four\xffREC", b"the fifth and last")
PAGE = 4096


def scan_segment(data: bytes) -> SegmentScan:
    return scan_records(data, HEADER, NAME)


def group(sequence: int, durable: int, *payloads: bytes) -> bytes:
    """One write: all its records know the same bytes to be durable, and begin behind them."""
    data = b""
    for at, payload in enumerate(payloads):
        record = Record(RecordType.GROUP, LogPosition(3, sequence + at), durable, payload)
        data += encode_record(record, SALT, durable + len(data))
    return data


def segment(payloads: tuple[bytes, ...] = PAYLOADS) -> bytes:
    """Each record in a write of its own."""
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
    return tuple(bytes(record.payload) for record in scan.records)


def test_given_a_segment_when_written_today_then_it_is_the_golden_file() -> None:
    assert segment() == (GOLDEN / "segment.bin").read_bytes()


def test_given_the_golden_segment_when_read_then_all_is_there() -> None:
    scan = scan_segment((GOLDEN / "segment.bin").read_bytes())

    assert scan.header == HEADER
    assert payloads_of(scan) == PAYLOADS
    assert [record.position for record in scan.records] == [(3, at) for at in range(1, 6)]
    assert scan.length == len(segment())


def test_given_a_segment_when_cut_at_any_byte_then_the_whole_records_before_are_kept() -> None:
    data, boundaries = segment(), ends()

    for cut in range(len(data) + 1):
        scan = scan_segment(data[:cut])

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
            assert payloads_of(scan_segment(bytes(damaged))) == PAYLOADS[:-1]
        else:
            with pytest.raises(Corrupt):
                scan_segment(bytes(damaged))


def test_given_a_header_when_any_bit_flips_or_all_is_lost_then_the_segment_is_corrupt() -> None:
    data = segment()

    for bit in range(HEADER_BYTES * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Corrupt):
            scan_segment(bytes(damaged))
    with pytest.raises(Corrupt):
        scan_segment(bytes(HEADER_BYTES) + data[HEADER_BYTES:])


@pytest.mark.parametrize("kept", range(1, 4))
def test_given_a_write_of_pages_when_torn_out_of_order_then_it_is_a_torn_tail(kept: int) -> None:
    data = encode_header(HEADER)
    data += group(1, len(data), b"acknowledged")
    whole = data + group(2, len(data), *[bytes([at]) * 300 for at in range(64)])
    torn = bytearray(len(whole))
    torn[: len(data)] = data
    torn[kept * PAGE : (kept + 1) * PAGE] = whole[kept * PAGE : (kept + 1) * PAGE]

    scan = scan_segment(bytes(torn))

    assert payloads_of(scan) == (b"acknowledged",)
    assert scan.length == len(data)


def test_given_a_later_write_when_a_page_before_it_is_lost_then_it_is_corrupt() -> None:
    data = encode_header(HEADER)
    data += group(1, len(data), *[bytes([at]) * 300 for at in range(64)])
    data += group(65, len(data), b"knows that all before it was synced")

    for page in range(len(data) // PAGE):
        torn = bytearray(data)
        torn[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
        with pytest.raises(Corrupt):
            scan_segment(bytes(torn))


def test_given_garbage_behind_the_records_when_read_then_it_is_a_torn_tail() -> None:
    data = segment()

    scan = scan_segment(data + b"\xffREC" * 50 + bytes(100))

    assert payloads_of(scan) == PAYLOADS
    assert scan.length == len(data)


@pytest.mark.parametrize("where", ["another segment", "another place"])
def test_given_a_value_with_bytes_of_a_record_when_its_group_is_torn_then_they_prove_nothing(
    where: str,
) -> None:
    data = encode_header(HEADER)
    data += group(1, len(data), b"acknowledged")
    inside = len(data) + RECORD_HEADER_BYTES
    other = SegmentHeader(REGION_ID, Numbered(3, 2, 2))
    salt, offset = (salt_of(other), inside) if where == "another segment" else (SALT, inside + 1)
    copied = encode_record(Record(RecordType.GROUP, LogPosition(3, 9), 1 << 40, b"x"), salt, offset)
    torn = (data + group(2, len(data), copied + bytes(500)))[:-100]

    assert payloads_of(scan_segment(torn)) == (b"acknowledged",)


def test_given_another_segment_when_read_then_it_is_corrupt() -> None:
    moved = SegmentHeader(REGION_ID + 1, HEADER.name)

    with pytest.raises(Corrupt):
        scan_records(segment(), moved, NAME)


@pytest.mark.parametrize("type_", [0, *range(RecordType.FLOOR, RecordType.DURABLE + 1), 77])
def test_given_a_type_that_is_not_replayed_when_met_then_it_is_named_with_its_position(
    type_: int,
) -> None:
    data = encode_header(HEADER)
    data += encode_record(Record(type_, LogPosition(3, 8), len(data), b""), SALT, len(data))
    (record,) = scan_segment(data).records

    with pytest.raises(Corrupt) as damage:
        refuse_unknown(record, (RecordType.SCHEMA, RecordType.GROUP), NAME)

    facts = damage.value.facts
    assert (facts["record_type"], facts["epoch"], facts["sequence"]) == (type_, 3, 8)


def test_given_a_newer_format_when_read_then_it_is_refused_loudly() -> None:
    data = bytearray(encode_header(HEADER))
    data[6] = 3
    data[-4:] = zlib.crc32(data[:-4]).to_bytes(4, "little")

    with pytest.raises(Corrupt):
        scan_segment(bytes(data))
