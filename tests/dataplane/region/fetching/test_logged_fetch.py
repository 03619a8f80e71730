"""Ingests travel in the leader's log: a copy has such a record once it has the files."""

import copy as copying
import posixpath
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.engine.region_changes import RegionChange
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leading import lead, lead_alone
from dataplane.region.log.logged_change import LoggedChange, decode_change
from dataplane.region.log.logged_files import LoggedFiles
from dataplane.region.manifests.copied_names import COPIED
from dataplane.region.manifests.manifest import FileEntry
from dataplane.region.place import OpenOrder
from metasrv_base.errors import Conflict, Corrupt, NotFound, Unavailable
from tests.dataplane.region.attempts import ATTEMPT, MARK
from tests.dataplane.region.entries import INDEX, SCHEMA, entries_of
from tests.dataplane.region.fetching import fetching
from tests.dataplane.region.fetching.ingest_lives import TINY, promoted, worked
from tests.dataplane.region.fetching.ingesting import (
    ITEMS,
    TAKES_ENTRIES,
    TAKES_ROWS,
    Moment,
    change,
    entries_made,
    fetch_lacked,
    ingest,
    moment,
    work,
)
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, A, B, C, contents, order, place
from tests.dataplane.region.unique_entries import FILLED, MADE, SOURCE

GOLDEN = Path(__file__).parents[3] / "golden" / "region"


def led(upto: int = ITEMS) -> tuple[Region, list[Moment]]:
    region = leader(MemoryDisk(MemoryStore()))
    if upto == ITEMS:
        return region, [moment(region), *worked(region, 1)]
    for item in range(1, upto + 1):
        work(region, item)
    return region, []


def caught_up(region: Region, copy: CopyRegion, common: int, upto: int = ITEMS) -> int:
    """Sends and fetches until the copy has the records up to *upto*."""
    while (end := copy.take(sent(region, copy.durable.sequence, common, upto=upto))) < upto:
        assert copy.lacks is not None
        fetch_lacked(region, copy)
    return end


# -- one copy


@pytest.mark.parametrize("end", range(TAKES_ENTRIES, ITEMS + 1))
def test_given_ingests_among_rows_when_streamed_then_a_copy_is_at_each_position_as_its_leader(
    end: int,
) -> None:
    region, as_led = led()
    store = MemoryStore()
    copy = copy_at(MemoryDisk(store), limits=TINY)
    for common in range(end + 1):
        assert caught_up(region, copy, common, upto=end) == end

    copy.close()
    assert promoted(store, 2) == (end, as_led[end])


def test_given_files_that_are_not_here_then_the_copy_says_so_and_has_no_record_from_there_on() -> (
    None
):
    region, _ = led()
    copy = copy_at(MemoryDisk(MemoryStore()))

    for common in (0, 3, 4):
        assert copy.take(sent(region, 0, common)) == TAKES_ENTRIES - 1

    assert copy.lacks is not None
    assert (copy.lacks.epoch, copy.lacks.sequence) == (1, TAKES_ENTRIES)
    assert [entry.name for entry in copy.lacks.files.files] == [
        f"{ATTEMPT}/1-0.parquet",
        f"{ATTEMPT}/1-1.parquet",
    ]
    fetch = fetch_lacked(region, copy)
    assert fetch.bytes_here == fetch.bytes_total > 0
    assert copy.take(sent(region, 4, 4)) == TAKES_ROWS - 1
    assert copy.lacks.sequence == TAKES_ROWS


def test_given_a_fetch_that_ended_half_when_begun_again_then_only_the_rest_is_fetched() -> None:
    region, _ = led(TAKES_ENTRIES)
    copy = copy_at(MemoryDisk(MemoryStore()))
    copy.take(sent(region, 0, 0))
    fetch = copy.fetch_lacked()
    names = fetch.names_in(A)
    first, second = fetch.missing
    data = region.place.disk.read(posixpath.join(A, names[0]), 0, 1 << 20)
    arrival = fetch.receive(first)
    arrival.append(data)
    arrival.finish()
    fetch.receive(second).append(b"half of a file")

    again = copy.fetch_lacked()

    assert again.names_in(A) == names[1:]
    assert caught_up(region, copy, 5, TAKES_ENTRIES) == TAKES_ENTRIES


def test_given_a_file_that_is_damaged_on_its_way_then_the_record_is_not_taken() -> None:
    region, _ = led(TAKES_ENTRIES)
    copy = copy_at(MemoryDisk(MemoryStore()))
    copy.take(sent(region, 0, 0))
    fetch = copy.fetch_lacked()
    for number, name in zip(fetch.missing, fetch.names_in(A), strict=True):
        data = region.place.disk.read(posixpath.join(A, name), 0, 1 << 20)
        arrival = fetch.receive(number)
        arrival.append(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(Corrupt):
            arrival.finish()
        arrival.close()

    assert copy.take(sent(region, 4, 4)) == TAKES_ENTRIES - 1
    assert caught_up(region, copy, 5, TAKES_ENTRIES) == TAKES_ENTRIES


def test_given_a_former_leader_then_its_own_files_have_their_names_and_are_not_fetched() -> None:
    region, _ = led(TAKES_ENTRIES)
    disk = region.place.disk
    second = copy_at(MemoryDisk(MemoryStore()), C)
    caught_up(region, second, 2, TAKES_ENTRIES)
    region.close()
    second.close()
    opening = lead(place(second.place.disk, C), order(2))
    opening.count()
    former = CopyRegion(place(disk, A), REGION_ID)

    assert former.take(sent(opening.region, TAKES_ENTRIES, TAKES_ENTRIES)) == TAKES_ENTRIES

    assert former.lacks is None
    former.close()
    again = lead(place(disk, A), order(3))
    again.count()
    assert moment(again.region) == moment(opening.region)
    assert not [entry for entry in again.region.manifest.files if COPIED in entry.name]


def test_given_a_next_leader_that_has_a_copied_file_then_another_copy_fetches_it_from_there() -> (
    None
):
    region, as_led = led()
    second, store = copy_at(MemoryDisk(MemoryStore()), C), MemoryStore()
    caught_up(region, second, 2)
    second.close()
    opening = lead(place(second.place.disk, C), order(2))
    opening.count()
    third = copy_at(MemoryDisk(store), limits=TINY)

    assert caught_up(opening.region, third, 2) == ITEMS

    third.close()
    assert promoted(store, 3) == (ITEMS, as_led[ITEMS])


def test_given_files_that_the_leader_has_merged_then_a_learner_takes_all_that_it_has() -> None:
    region, as_led = led()
    store = MemoryStore()
    copy = copy_at(MemoryDisk(store), limits=TINY)
    assert copy.take(sent(region, 0, 4)) == TAKES_ENTRIES - 1
    fetch = copy.fetch_lacked()
    with pytest.raises(NotFound, match="parquet"):
        region.pin_named("session", fetch.names_in(A))

    copy.needs_all()
    assert copy.take(sent(region, 4, ITEMS)) == TAKES_ENTRIES - 1

    assert (copy.needs_files, copy.lacks) == (1, None)
    region.maintenance.flush()
    fetching.fetched(region, copy)
    assert copy.take(sent(region, copy.durable.sequence, ITEMS)) == ITEMS
    copy.close()
    assert promoted(store, 2) == (ITEMS, as_led[ITEMS])


def test_given_a_whole_fetch_that_is_given_up_then_what_the_own_log_names_is_still_there() -> None:
    region, as_led = led()
    store = MemoryStore()
    copy = copy_at(MemoryDisk(store), limits=TINY)
    caught_up(region, copy, 2, TAKES_ENTRIES)
    copy.close()
    other = leader(MemoryDisk(MemoryStore()), C)

    copy.fetch(C, other.manifest)

    assert promoted(store, 2) == (TAKES_ENTRIES, as_led[TAKES_ENTRIES])


def test_given_a_file_that_was_lost_since_then_the_copy_does_not_lead_without_it() -> None:
    region, _ = led(TAKES_ENTRIES)
    copy = copy_at(MemoryDisk(MemoryStore()))
    caught_up(region, copy, 2, TAKES_ENTRIES)
    copy.close()
    disk = copy.place.disk
    disk.remove(f"{B}/{COPIED}/{disk.list(f'{B}/{COPIED}')[0]}")

    with pytest.raises(Unavailable, match="region-lost"):
        lead(place(disk, B), order(2))
    with pytest.raises(Unavailable, match="region-lost"):
        Region.open(place(disk, B), order(2))


Step = tuple[str, int]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["send", "fetch", "restart", "tidy", "flush"]), st.integers(0, 11)
        )
    )
)
def test_given_any_way_of_sending_then_a_copy_comes_to_be_as_its_leader(steps: list[Step]) -> None:
    region, as_led = led()
    store = MemoryStore()
    copy = copy_at(MemoryDisk(store), limits=TINY)
    common = 0
    for step, number in steps:
        if step == "send":
            common = max(common, min(number, copy.durable.sequence))
            copy.take(sent(region, 0, common, upto=max(number, common, 1)))
        elif step == "fetch" and copy.lacks is not None:
            fetch_lacked(region, copy)
        elif step == "restart":
            copy.close()
            copy = CopyRegion(place(MemoryDisk(store), B, limits=TINY), REGION_ID)
        elif copy.maintenance is not None:
            copy.maintenance.collect() if step == "tidy" else copy.maintenance.flush()

    caught_up(region, copy, common)
    copy.close()
    assert promoted(store, 2) == (ITEMS, as_led[ITEMS])


# -- the leader


def test_given_an_ordered_ingest_then_it_has_no_effect_before_it_is_settled() -> None:
    region, _ = led(TAKES_ENTRIES - 1)
    source, before = entries_made(region), entries_of(region)
    assert list(region.file_ingest.entries_first(source)) == []

    ordered = region.changes.order(source)

    assert ordered.record is not None
    assert entries_of(region) == before
    assert not region.maintenance.flush(), "its log has a record that is not in memory"
    region.changes.settle(ordered.record)
    assert set(entries_of(region).values()) == {b"a", b"b", b"c", b"d"}
    assert region.changes.order(source).record is None, "once"


def test_given_files_that_wait_for_copies_then_they_are_not_collected_and_may_be_fetched() -> None:
    region, _ = led(TAKES_ENTRIES - 1)
    source = entries_made(region)
    list(region.file_ingest.entries_first(source))
    change(region, RegionChange(SCHEMA, "another"))
    ordered = region.changes.order(source)
    names = [file.name for file in source.files]

    region.pin_named("session", names)
    with pytest.raises(NotFound):
        region.pin_named("other", [*names, "manifest-1-1-1"])
    region.maintenance.collect()

    assert ordered.record is not None
    region.changes.settle(ordered.record)
    region.pin_named("third", names)


def test_given_an_ingest_as_of_a_closed_mark_then_it_is_refused_and_not_logged() -> None:
    region, _ = led(TAKES_ENTRIES - 1)
    source = entries_made(region)
    change(region, RegionChange(SCHEMA, closes=(MARK,)))
    end = region.log_history.end

    with pytest.raises(Conflict, match="not open"):
        ingest(region, source)

    assert region.log_history.end == end
    assert region.stopped is None


def test_given_entries_that_would_lose_then_they_are_put_by_the_log_in_front_of_the_files() -> None:
    region = Region.open(place(MemoryDisk(copying.deepcopy(MADE))), order(2))
    before = region.log_history.end

    ingest(region, SOURCE)

    assert region.log_history.end == before + 2, "entries, then the files"
    assert entries_of(region, INDEX) == FILLED


def test_given_a_region_that_is_opened_alone_when_its_log_has_an_ingest_then_it_is_made() -> None:
    region, as_led = led()
    copy = copy_at(MemoryDisk(MemoryStore()))
    caught_up(region, copy, 0, TAKES_ROWS)
    copy.close()

    alone = lead_alone(place(copy.place.disk, C), OpenOrder(REGION_ID, 2, (B,)))

    found = moment(alone.region)
    assert (found.rows, found.marks) == (as_led[TAKES_ROWS].rows, as_led[TAKES_ROWS].marks)
    assert {entry.root for entry in alone.region.manifest.files} == {B}
    newer = Region.open(place(copy.place.disk, A), OpenOrder(REGION_ID, 3, (B, C)))
    assert contents(newer) == as_led[TAKES_ROWS].rows


# -- the record


def test_given_an_ingest_when_encoded_then_it_is_the_golden_bytes() -> None:
    region = leader(MemoryDisk(MemoryStore()))
    entry = FileEntry(
        root=None,
        name="attempts/p-1/1.parquet",
        family=INDEX,
        bytes=9,
        crc32="0" * 8,
        footer_bytes=3,
        footer_crc32="1" * 8,
        rows=1,
        row_checksum="2" * 16,
        min_key="61",
        max_key="62",
        min_version=1,
        max_version=2,
    )
    files = LoggedFiles(name="p-1/3", root=A, files=(entry,))
    golden = LoggedChange.of(region.manifest, 9, files)

    assert golden.encode() == (GOLDEN / "change_files.json").read_bytes().rstrip(b"\n")
    assert decode_change(golden.encode(), "here") == golden
