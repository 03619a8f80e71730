"""A region's snapshot: files that hold every row as of a mark, and that stay as long as it is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.compaction import compaction
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.format.families import ROWS
from dataplane.region.format.key_range import KeyRange
from dataplane.region.place import RegionLimits
from metasrv_base.errors import NotFound, Unavailable
from tests.dataplane.region.entries import INDEX, OTHER, SCHEMA, new_region, write_mixed
from tests.dataplane.region.rig import SPEC, A, B, Row, contents, order, place, write
from tests.dataplane.region.snapshots import rows_of

MARK = "reorg"


def marked_region() -> Region:
    region = Region.create(place(MemoryDisk(MemoryStore())), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x"), b"b": (2, "y")})
    region.maintenance.flush()
    write(region, "s-2", {b"a": (3, "z"), b"c": (4, None)})
    region.set_schema(SCHEMA, MARK)
    return region


def test_given_rows_in_memory_when_asked_for_a_snapshot_then_they_are_in_its_files() -> None:
    region = marked_region()
    write(region, "s-3", {b"a": None, b"d": (5, "w")})

    snapshot = region.snapshot(MARK)

    assert rows_of(region.place.disk, snapshot) == {b"a": (3, "z"), b"b": (2, "y"), b"c": (4, None)}
    assert [one.root for one in snapshot.files] == [A, A]
    assert (snapshot.region_id, snapshot.epoch, snapshot.root) == (str(SPEC.region_id), 1, A)
    assert region.snapshot(MARK) == snapshot, "there is nothing of before the mark to flush"


def test_given_a_successor_when_asked_for_a_snapshot_then_borrowed_files_are_listed() -> None:
    region = marked_region()
    write(region, "s-3", {b"b": None})

    later = Region.open(place(region.place.disk, B), order(2, A))

    snapshot = later.snapshot(MARK)
    assert {one.root for one in snapshot.files} == {A, B}
    assert rows_of(region.place.disk, snapshot) == {
        b"a": (3, "z"),
        b"b": (2, "y"),
        b"c": (4, None),
    }


def test_given_entries_when_their_index_is_named_then_its_files_are_listed_too() -> None:
    region = new_region()
    write_mixed(region, "s-1", {(ROWS, b"a"): (1, "x"), (INDEX, b"x-a"): b"a", (OTHER, b"1"): b"a"})
    region.set_schema(SCHEMA, MARK)

    rows, both = region.snapshot(MARK), region.snapshot(MARK, [INDEX])

    assert [one.file.family for one in rows.files] == [ROWS]
    assert sorted(one.file.family for one in both.files) == [ROWS, INDEX]
    (entries,) = [one.file for one in both.files if one.file.family == INDEX]
    assert entries.rows == 1


def test_given_entries_of_a_forgotten_index_when_asked_for_all_then_its_files_are_listed_too() -> (
    None
):
    region = new_region()
    region.set_schema(SCHEMA)
    write_mixed(region, "s1", {(ROWS, b"a"): (1, "x"), (INDEX, b"x"): b"a"})
    region.maintenance.flush()
    write_mixed(region, "s2", {(ROWS, b"b"): (2, "y"), (OTHER, b"y"): b"b"})
    region.set_schema(SCHEMA, MARK)
    write_mixed(region, "s3", {(ROWS, b"c"): (3, "z")})

    whole, named = region.snapshot(MARK, None), region.snapshot(MARK, [INDEX])

    assert sorted(one.file.family for one in whole.files) == [ROWS, ROWS, INDEX, OTHER]
    assert {one.file.family for one in named.files} == {ROWS, INDEX}
    assert (whole.mark, whole.version) == (named.mark, named.version)


def test_given_no_open_mark_when_asked_for_a_snapshot_then_not_found() -> None:
    region = marked_region()

    with pytest.raises(NotFound):
        region.snapshot("another")
    region.set_schema(SCHEMA, close=[MARK])
    with pytest.raises(NotFound):
        region.snapshot(MARK)


def test_given_a_region_without_rows_when_asked_for_a_snapshot_then_it_has_no_files() -> None:
    region = new_region()
    region.set_schema(SCHEMA, MARK)
    write(region, "s-1", {b"a": (1, "x")})

    snapshot = region.snapshot(MARK)

    assert snapshot.files == []
    assert rows_of(region.place.disk, snapshot) == {}


def test_given_a_snapshot_when_its_files_are_merged_then_they_stay_until_the_mark_is_closed() -> (
    None
):
    region = marked_region()
    snapshot = region.snapshot(MARK)
    names = {one.file.name for one in snapshot.files}
    before = rows_of(region.place.disk, snapshot)
    for number in range(4):
        write(region, f"t-{number}", {b"a": (number, "t")})
        region.maintenance.flush()
    while region.maintenance.compact():
        pass
    assert not names & {entry.name for entry in region.manifest.files}, "they were merged"

    region.maintenance.sweep()
    region.maintenance.collect()

    assert rows_of(region.place.disk, snapshot) == before
    assert rows_of(region.place.disk, region.snapshot(MARK)) == before
    region.set_schema(SCHEMA, close=[MARK])
    assert region.maintenance.sweep() > 0
    with pytest.raises(Unavailable, match="region-lost"):
        rows_of(region.place.disk, snapshot)


def test_given_a_snapshot_that_is_asked_for_again_when_swept_then_only_the_newest_is_kept() -> None:
    region = marked_region()
    old = region.snapshot(MARK)
    for number in range(4):
        write(region, f"t-{number}", {b"a": (number, "t")})
        region.maintenance.flush()
    while region.maintenance.compact():
        pass

    new = region.snapshot(MARK)
    region.maintenance.sweep()

    assert old.files != new.files
    source = FileSource(region.place.disk, A, region.place.cache)
    for one in new.files:
        entry = next(e for e in region.manifest.files if e.name == one.file.name)
        FileReader(source, entry).verify_present()
    with pytest.raises(Unavailable, match="region-lost"):
        rows_of(region.place.disk, old)


# Any history --------------------------------------------------------------------------------------

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
ROW: st.SearchStrategy[Row | None] = st.one_of(
    st.none(), st.tuples(st.integers(0, 3), st.sampled_from(["x", None]))
)
DEEDS = st.lists(
    st.one_of(
        st.dictionaries(KEYS, ROW, min_size=1, max_size=3),
        st.sampled_from(["flush", "flush", "compact", "reopen", "take over"]),
    ),
    max_size=10,
)


def lived(region: Region, deeds: list[dict[bytes, Row | None] | str], name: str) -> Region:
    for number, deed in enumerate(deeds):
        epoch = region.opening.epoch
        match deed:
            case dict():
                write(region, f"{name}-{number}", deed)
            case "flush":
                region.maintenance.flush()
            case "compact":
                region.maintenance.compact()
            case "reopen":
                region = Region.open(region.place, order(epoch, *region.manifest.borrowed_roots))
            case _:
                if not region.manifest.borrowed_roots:
                    root = f"/disk/{epoch + 1}/region"
                    new = place(region.place.disk, root, limits=region.place.limits)
                    region = Region.open(new, order(epoch + 1, region.place.root))
    return region


@pytest.mark.slow
@settings(max_examples=30)
@given(before=DEEDS, behind=DEEDS, low=KEYS)
def test_given_any_history_when_read_at_a_mark_then_the_rows_are_those_of_that_moment(
    before: list[dict[bytes, Row | None] | str],
    behind: list[dict[bytes, Row | None] | str],
    low: bytes,
) -> None:
    small = place(MemoryDisk(MemoryStore()), limits=RegionLimits(memtable_bytes=1_500))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FAN_IN", 2)  # so that a short history merges
        region = lived(Region.create(small, SPEC, epoch=1), before, "before")
        region.set_schema(SCHEMA, MARK)
        seen = contents(region)

        region = lived(region, behind, "behind")
        found = rows_of(region.place.disk, region.snapshot(MARK))

    assert found == seen
    upper = rows_of(region.place.disk, region.snapshot(MARK), KeyRange(low))
    assert upper == {key: row for key, row in seen.items() if key >= low}
