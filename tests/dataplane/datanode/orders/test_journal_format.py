"""A file of the journal, damaged in every way: what was answered for is there, or it is loud."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.datanode.orders.journal_files import JournalFiles
from dataplane.datanode.orders.journal_format import (
    Adopted,
    Dropped,
    JournalOpened,
    Record,
    TermSeen,
    contents_of,
    decode,
    header_of,
)
from dataplane.datanode.orders.node_state import fold
from dataplane.log.records import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    LogPosition,
    RecordType,
    encode_record,
    salt_of,
    scan_records,
)
from dataplane.log.records import Record as Framed
from dataplane.log.segment import Segment, SegmentRecords, begin
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Corrupt
from tests.dataplane.datanode.orders.journal_records import GOLDEN, RECORDS, REGION

PAGE = 512


@dataclass
class Written:
    """A file and where each part of it ends: what it began with, and each commit."""

    data: bytes
    ends: list[int] = field(default_factory=list)
    """Ends of records. Behind each commit stands the record that says that it is durable."""
    marks: list[int] = field(default_factory=list)
    """Where those end."""
    records: list[list[Record]] = field(default_factory=list)


def written(commits: Sequence[Sequence[Record]], beginning: Sequence[Record] = RECORDS) -> Written:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/n")
    files = JournalFiles(disk, "/n")
    files.begin(beginning)
    inode = store.live["/n/journal-1"]
    found = Written(b"", [len(inode.data)], [len(inode.data)], [list(beginning)])
    for commit in commits:
        files.append(commit)
        found.ends.append(inode.synced)
        found.marks.append(len(inode.data))
        found.records.append(list(commit))
    found.data = bytes(inode.data)
    return found


def read(data: bytes) -> list[Record]:
    return decode(data, 1, "journal-1").records


def drops(first: int, count: int) -> list[Record]:
    return [Dropped(region_id=str(REGION + first + at)) for at in range(count)]


COMMITS = [drops(10, 1), drops(20, 3), drops(30, 1)]
WHOLE = written(COMMITS)
ALL = [record for part in WHOLE.records for record in part]


class Piece(NamedTuple):
    """A record as it stands in the file."""

    first: int
    end: int
    durable: int


def pieces() -> list[Piece]:
    found, at = list[Piece](), HEADER_BYTES
    for record in scan_records(WHOLE.data, header_of(1), "journal-1").records:
        end = at + RECORD_HEADER_BYTES + len(record.payload)
        found.append(Piece(at, end, record.durable))
        at = end
    return found


def must_be_kept(damaged: bytes, first: int, end: int) -> None:
    """Bytes from *first* to *end* are not as they were. All records are there, or it is `Corrupt`;
    commits at the end may be missing where nothing that is left knows of them: nobody can tell
    them from a torn write."""
    try:
        found = read(damaged)
    except Corrupt:
        return
    if found == ALL:
        return
    hit = [piece for piece in pieces() if piece.first < end and piece.end > first]
    left = [piece for piece in pieces() if piece not in hit]
    damage = hit[0].first if hit else 0
    assert damage >= WHOLE.ends[0], "what it began with is never missing"
    assert all(piece.durable <= damage for piece in left), "and nothing that the rest knows of"
    kept = [part for part, end in zip(WHOLE.records, WHOLE.ends, strict=True) if end <= first]
    assert found == ALL[: len(found)]
    assert len(found) >= sum(len(part) for part in kept)


def test_given_every_kind_of_record_when_written_then_as_in_the_golden_file() -> None:
    golden = GOLDEN / "journal.v2.bin"

    assert golden.read_bytes() == WHOLE.data
    assert decode(golden.read_bytes(), 1, "journal-1") == (ALL, LogPosition(1, len(ALL)))


def test_given_an_adoption_when_written_then_as_in_its_golden_file() -> None:
    records: list[Record] = [
        RECORDS[0],
        Adopted(cluster_id="c2", from_cluster_id="c1"),
        TermSeen(term=3),
    ]
    golden = (GOLDEN / "journal_adopted.v2.bin").read_bytes()

    assert golden == written([], records).data
    state = fold("dn-1", read(golden))
    assert (state.cluster_id, state.adopted_from, state.term) == ("c2", "c1", 3)
    assert state.records() == records


def test_given_a_bit_flipped_at_every_byte_then_all_is_there_or_it_is_corrupt() -> None:
    silent = 0
    for at in range(len(WHOLE.data)):
        for bit in range(8):
            damaged = bytearray(WHOLE.data)
            damaged[at] ^= 1 << bit
            if at < WHOLE.ends[-1]:
                with pytest.raises(Corrupt):
                    read(bytes(damaged))
            else:
                assert read(bytes(damaged)) == ALL
                silent += 1

    assert silent == 8 * (len(WHOLE.data) - WHOLE.ends[-1]), "the newest mark alone holds nothing"


def test_given_a_cut_at_every_byte_then_what_ended_before_it_is_there() -> None:
    """A cut between two commits cannot be detected; a cut inside one is torn."""
    for cut in range(len(WHOLE.data)):
        if cut < WHOLE.ends[0]:
            with pytest.raises(Corrupt):
                read(WHOLE.data[:cut])
            continue
        found = read(WHOLE.data[:cut])
        ended = [part for part, end in zip(WHOLE.records, WHOLE.ends, strict=True) if end <= cut]
        known = [record for part in ended for record in part]
        assert found[: len(known)] == known
        assert found == ALL[: len(found)]


@given(st.data())
def test_given_any_range_that_is_lost_then_all_is_there_or_it_is_corrupt(
    draw: st.DataObject,
) -> None:
    first = draw.draw(st.integers(0, len(WHOLE.data) - 1))
    end = draw.draw(st.integers(first + 1, len(WHOLE.data)))
    filling = draw.draw(
        st.one_of(
            st.just(bytes(end - first)),
            st.binary(min_size=end - first, max_size=end - first),
            st.integers(0, len(WHOLE.data) - (end - first)).map(
                lambda at: WHOLE.data[at : at + end - first]
            ),
        )
    )
    damaged = WHOLE.data[:first] + filling + WHOLE.data[end:]

    must_be_kept(damaged, first, end)


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_given_pages_of_the_newest_write_in_any_order_then_it_is_torn_and_not_corrupt(
    before: int, count: int, draw: st.DataObject
) -> None:
    """A crash before its sync returned: nobody was told of it, and it has any of its pages."""
    whole = written([drops(100, before), drops(200, count)])
    start, end = whole.marks[-2], whole.ends[-1]
    pages = range(start // PAGE, (end - 1) // PAGE + 1)
    kept = draw.draw(st.sets(st.sampled_from(pages)))
    data = bytearray(whole.data[:start]).ljust(end, b"\0")
    for page in kept:
        first, last = max(start, page * PAGE), min(end, (page + 1) * PAGE)
        data[first:last] = whole.data[first:last]

    found = read(bytes(data))

    acknowledged = [record for part in whole.records[:-1] for record in part]
    assert found[: len(acknowledged)] == acknowledged
    torn = found[len(acknowledged) :]
    assert torn == whole.records[-1][: len(torn)]


def test_given_a_beginning_of_which_any_page_is_lost_then_it_is_corrupt() -> None:
    """It was synced before the file had its name, though nothing is written behind it."""
    whole = written([], [JournalOpened(node_id="dn-1"), *drops(0, 100)])

    for first in range(0, len(whole.data), PAGE):
        lost = whole.data[first : first + PAGE]
        with pytest.raises(Corrupt):
            read(whole.data[:first] + bytes(len(lost)) + whole.data[first + PAGE :])
        with pytest.raises(Corrupt):
            read(whole.data[:first])


def test_given_another_file_of_the_journal_then_it_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        decode(WHOLE.data, 2, "journal-2")


@pytest.mark.parametrize("type_", [RecordType.GROUP, RecordType.FREEZE, 77])
def test_given_a_record_of_a_type_that_is_not_known_then_reading_stops_loudly(type_: int) -> None:
    offset = len(WHOLE.data)
    record = Framed(type_, LogPosition(1, len(ALL) + 1), WHOLE.ends[-1], b"{}")

    with pytest.raises(Corrupt) as told:
        read(WHOLE.data + encode_record(record, salt_of(header_of(1)), offset))

    assert told.value.facts["record_type"] == type_


def test_given_a_record_that_is_left_out_then_the_next_one_does_not_follow() -> None:
    with pytest.raises(Corrupt, match="sequence"):
        read(framed([*contents_of(RECORDS, 1, 0), *contents_of(RECORDS[-1:], 1, len(RECORDS) + 1)]))


@pytest.mark.parametrize("payload", [b'{"kind":"opened","format":2,"node_id":"dn-1"}', b"{}", b""])
def test_given_a_record_of_the_future_then_corrupt(payload: bytes) -> None:
    with pytest.raises(Corrupt):
        read(framed([SegmentRecords(RecordType.NODE, LogPosition(1, 1), payload)]))


@pytest.mark.parametrize("count", [0, 1])
def test_given_no_beginning_then_corrupt(count: int) -> None:
    with pytest.raises(Corrupt, match="beginning"):
        read(framed(contents_of(RECORDS[1 : 1 + count], 1, 0)))


def framed(contents: Sequence[SegmentRecords]) -> bytes:
    store = MemoryStore()
    segment: Segment = begin(MemoryDisk(store).create("/journal-1"), header_of(1))
    assert segment.length == HEADER_BYTES
    segment.append(contents)
    return bytes(store.live["/journal-1"].data)
