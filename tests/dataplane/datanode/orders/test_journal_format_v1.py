"""Journals of lines, as they were written before: cut, flipped, and read for the last time."""

import pytest

from dataplane.datanode.orders.journal_format import Executed, JournalOpened, Record
from dataplane.datanode.orders.journal_format_v1 import decode, is_lines
from metasrv_base.errors import Corrupt
from tests.dataplane.datanode.orders.journal_records import GOLDEN, RECORDS, REGION, V1

DATA = V1.read_bytes()


def ends() -> list[int]:
    """Where each line ends."""
    return [at + 1 for at, byte in enumerate(DATA) if byte == ord("\n")]


def read(data: bytes) -> list[Record]:
    return decode(data, "journal-1")


def test_given_a_journal_of_lines_when_decoded_then_every_kind_of_record_is_there() -> None:
    assert is_lines(DATA)
    assert read(DATA) == RECORDS


def test_given_a_journal_of_before_floors_when_decoded_then_its_orders_raised_none() -> None:
    before = read((GOLDEN / "journal_without_floors.v1.txt").read_bytes())

    assert [getattr(record, "floor_version", None) for record in before] == [None] * 6
    assert before[3] == Executed(region_id=str(REGION), term=7, number=1, op="create")


def test_given_a_cut_at_every_byte_when_decoded_then_exactly_the_whole_records() -> None:
    for cut in range(ends()[0], len(DATA) + 1):
        whole = sum(end <= cut for end in ends())
        assert read(DATA[:cut]) == RECORDS[:whole]
    for cut in range(ends()[0]):
        with pytest.raises(Corrupt):
            read(DATA[:cut])


def test_given_a_flipped_bit_when_decoded_then_the_records_before_it_or_corrupt() -> None:
    last = ends()[-2]

    for bit in range(len(DATA) * 8):
        damaged = bytearray(DATA)
        damaged[bit // 8] ^= 1 << bit % 8
        if bit // 8 >= last:
            assert read(bytes(damaged)) == RECORDS[:-1]
        else:
            with pytest.raises(Corrupt):
                read(bytes(damaged))


def test_given_a_record_of_the_future_when_decoded_then_corrupt() -> None:
    line = DATA[: ends()[0]].replace(b'"format":1', b'"format":2')
    assert read(DATA[: ends()[0]]) == [JournalOpened(node_id="dn-1")]

    with pytest.raises(Corrupt):
        read(line)
