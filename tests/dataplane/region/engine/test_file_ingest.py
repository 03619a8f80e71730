"""Ingest of a backfill's sorted files: taken once, and what is newer than they are wins."""

from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.compaction import compaction
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import PUT, file_schema
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.adoption import Ingest, data_file
from dataplane.region.place import RegionLimits
from metasrv_base.elements import graphs
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused
from metasrv_base.wire.node.orders import DataFile
from tests.dataplane.region.attempts import ATTEMPT, MARK
from tests.dataplane.region.entries import (
    INDEX,
    OTHER,
    SCHEMA,
    Place,
    Value,
    by_index,
    entries_of,
    new_region,
    write_mixed,
)
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, cut_short
from tests.dataplane.region.rig import SPEC, A, contents, order, place


def entry_key(value: bytes, key: bytes) -> bytes:
    return value + b"-" + key


def built(region: Region, rows: dict[bytes, tuple[bytes, int]], family: int = INDEX) -> Ingest:
    """The job's output: an entry for each row, by its value, of the row's version."""
    disk, root = region.place.disk, region.place.root
    disk.make_folder(f"{root}/{ATTEMPT}")
    found = sorted((entry_key(value, key), key, version) for key, (value, version) in rows.items())
    files: list[DataFile] = []
    if found:
        keys, pointed, versions = zip(*found, strict=True)
        columns = [keys, versions, [PUT] * len(found), pointed]
        schema = file_schema(ENTRY_COLUMNS)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        target = FileTarget(disk, root, f"{ATTEMPT}/1.parquet", ENTRY_COLUMNS, family)
        files = [data_file(write_rows(target, [pa.table(arrays, schema=schema)]))]
    return Ingest("p-1", ATTEMPT, family, MARK, files)


def values_of(region: Region) -> dict[bytes, tuple[bytes, int]]:
    """Value and version of each row now."""
    found: dict[bytes, tuple[bytes, int]] = {}
    for part in region.reader.scan():
        table = part.to_pydict()
        pairs = zip(table["c2"], table["_version"], strict=True)
        found |= {
            key: (value.encode(), version)
            for key, (value, version) in zip(table["_key"], pairs, strict=True)
        }
    return found


@pytest.fixture
def region() -> Region:
    """Rows of before the index, and a mark where its writers began to keep it."""
    return made_region(MemoryDisk(MemoryStore()))


def made_region(disk: MemoryDisk) -> Region:
    region = new_region(disk)
    write_mixed(region, "s-1", {(ROWS, b"a"): (1, "x"), (ROWS, b"b"): (2, "y")})
    region.maintenance.flush()
    write_mixed(region, "s-2", {(ROWS, b"c"): (3, "z")})
    region.set_schema(SCHEMA, MARK)
    return region


def test_given_files_of_a_backfill_when_ingested_then_every_row_has_its_entry(
    region: Region,
) -> None:
    source = built(region, values_of(region))

    assert region.file_ingest.ingest(source)
    assert not region.file_ingest.ingest(source), "once"

    assert [key for _, key, _ in by_index(region)] == [b"a", b"b", b"c"]
    again = Region.open(region.place, order(2))
    assert by_index(again) == by_index(region)
    assert not again.file_ingest.ingest(source)


@pytest.mark.parametrize("flushes", [False, True])
def test_given_entries_that_changed_behind_the_mark_when_ingested_then_the_newer_win(
    region: Region, flushes: bool
) -> None:
    source = built(region, values_of(region))
    write_mixed(region, "s-3", {(ROWS, b"a"): None, (INDEX, b"x-a"): None})
    moved: dict[Place, Value] = {
        (ROWS, b"b"): (2, "n"),
        (INDEX, b"y-b"): None,
        (INDEX, b"n-b"): b"b",
    }
    write_mixed(region, "s-4", moved)
    if flushes:
        region.maintenance.flush()
        for number in range(4):
            write_mixed(region, f"t-{number}", {(INDEX, b"t"): None})
            region.maintenance.flush()
        region.maintenance.compact()

    region.file_ingest.ingest(source)
    region.set_schema(SCHEMA, close=[MARK])

    assert entries_of(region) == {b"n-b": b"b", b"z-c": b"c"}
    region.maintenance.flush()
    while region.maintenance.compact():
        pass
    assert entries_of(region) == {b"n-b": b"b", b"z-c": b"c"}
    with pytest.raises(Conflict):
        write_mixed(region, "s-5", {(INDEX, b"z-c"): b"d"}, {(INDEX, b"z-c"): 0})


@pytest.mark.case("online 26")
def test_given_another_column_that_changed_before_the_backfill_when_ingested_then_an_entry_is_there(
    region: Region,
) -> None:
    """A statement that writes no column of the index leaves out the entry, which may not exist
    yet."""
    assert graphs.INDEX.behaviours[ElementState.WRITE_ONLY].update_elsewhere == ()
    source = built(region, values_of(region))
    write_mixed(region, "s-3", {(ROWS, b"a"): (9, "x")})
    before = entries_of(region)

    region.file_ingest.ingest(source)
    region.set_schema(SCHEMA, close=[MARK])

    entries = [(b"x-a", b"a", (9, "x")), (b"y-b", b"b", (2, "y")), (b"z-c", b"c", (3, "z"))]
    assert before == {}
    assert by_index(region) == entries


def test_given_files_that_are_not_of_the_index_or_its_mark_when_ingested_then_refused(
    region: Region,
) -> None:
    rows = values_of(region)
    source = built(region, rows)
    (file,) = source.files
    newer = [file.model_copy(update={"max_version": file.max_version + 1})]
    other = [file.model_copy(update={"family": OTHER})]
    gone = [file.model_copy(update={"name": f"{ATTEMPT}/2.parquet"})]
    elsewhere = [file.model_copy(update={"name": "attempts/another/1.parquet"})]
    before = region.manifest

    for files in (newer, other, gone, elsewhere):
        with pytest.raises(Refused):
            region.file_ingest.ingest(Ingest("p", ATTEMPT, INDEX, MARK, files))
    with pytest.raises(Conflict):
        region.file_ingest.ingest(Ingest("p", ATTEMPT, INDEX, "closed", source.files))
    region.set_schema(RegionSchema(3, 1, SPEC.columns, frozenset(), frozenset({INDEX})))
    with pytest.raises(Refused):
        region.file_ingest.ingest(source)

    assert region.manifest.files == before.files


def test_given_an_index_that_is_dropped_as_it_is_built_when_tidied_then_the_region_goes_on(
    region: Region,
) -> None:
    """Its file is let go, and goes by a sweep: a collection that had removed it, too, stopped the
    region, which served nobody for some seconds."""
    region.file_ingest.ingest(built(region, values_of(region)))
    region.set_schema(SCHEMA, close=[MARK])
    region.set_schema(RegionSchema(3, 1, SPEC.columns, frozenset(), frozenset({INDEX})))

    region.maintenance.collect()
    region.maintenance.sweep()

    assert region.stopped is None
    assert len(values_of(region)) == 3
    assert region.place.disk.list(f"{A}/{ATTEMPT}") == []
    region.maintenance.collect()
    with pytest.raises(NotFound):
        region.place.disk.list(f"{A}/{ATTEMPT}")


def test_given_a_reader_of_an_index_that_is_dropped_when_tidied_then_it_reads_to_its_end(
    region: Region,
) -> None:
    region.file_ingest.ingest(built(region, values_of(region)))
    region.set_schema(SCHEMA, close=[MARK])
    reading = region.reader.scan_entries(INDEX)
    found = [next(reading)]
    region.set_schema(RegionSchema(3, 1, SPEC.columns, frozenset(), frozenset({INDEX})))

    region.maintenance.collect()
    kept = region.place.disk.list(f"{A}/{ATTEMPT}")
    found += list(reading)
    region.maintenance.sweep()

    assert kept == ["1.parquet"]
    assert sum(part.num_rows for part in found) == 3
    assert region.stopped is None


def test_given_an_attempt_when_obsolete_files_are_collected_then_it_stays_until_its_mark_is_closed(
    region: Region,
) -> None:
    built(region, values_of(region))
    disk = region.place.disk

    region.maintenance.collect()
    assert disk.list(f"{A}/{ATTEMPT}") == ["1.parquet"]
    region.set_schema(SCHEMA, close=[MARK, "never opened"])
    region.maintenance.collect()

    assert disk.list(f"{A}/attempts") == []


MADE = MemoryStore()
SOURCE = built(made_region(MemoryDisk(MADE)), {b"a": (b"x", 1), b"b": (b"y", 1), b"c": (b"z", 1)})


def ingest_once(life: Life) -> None:
    region = Region.open(place(life.disk), order(1))
    life.floors.append(int(region.file_ingest.ingest(SOURCE)))


@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
def test_given_power_loss_anywhere_in_an_ingest_when_it_was_answered_then_all_is_there(
    device: str,
) -> None:
    seen = set()

    for life, store in cut_short(MADE, device, ingest_once):
        again = Region.open(place(MemoryDisk(store)), order(1))
        found = entries_of(again)
        assert found in ({}, {b"x-a": b"a", b"y-b": b"b", b"z-c": b"c"})
        assert found or not life.floors
        assert (SOURCE.name in again.manifest.adopted) == bool(found)
        seen.add(bool(found))

    assert seen == {False, True}


# A backfill beside writers ------------------------------------------------------------------------

KEYS = st.sampled_from([b"a", b"b", b"c"])
VALUES = st.one_of(st.none(), st.sampled_from(["x", "y"]))
WRITES = st.lists(
    st.one_of(
        st.tuples(KEYS, VALUES),
        st.sampled_from([("flush", None), ("flush", None), ("reopen", None)]),
    ),
    max_size=12,
)


@dataclass
class Writers:
    """Rows are written; from the mark on their entries are kept as write-only has it."""

    region: Region
    rows: dict[bytes, bytes] = field(default_factory=dict)
    statements: int = 0

    def run(self, writes: list[tuple[bytes | str, str | None]], keeps_index: bool) -> None:
        for key, value in writes:
            if isinstance(key, bytes):
                self._write(key, value, keeps_index)
            elif key == "flush":
                self.region.maintenance.flush()
                self.region.maintenance.compact()
            else:
                self.region = Region.open(self.region.place, order(1))

    def _write(self, key: bytes, value: str | None, keeps_index: bool) -> None:
        self.statements += 1
        values: dict[Place, Value] = {(ROWS, key): None if value is None else (0, value)}
        if keeps_index:
            if key in self.rows:
                values[INDEX, entry_key(self.rows[key], key)] = None
            if value is not None:
                values[INDEX, entry_key(value.encode(), key)] = key
        write_mixed(self.region, f"s-{self.statements}", values)
        self.rows.pop(key, None)
        if value is not None:
            self.rows[key] = value.encode()


@pytest.mark.slow
@settings(max_examples=40)
@given(before=WRITES, during=WRITES, behind=WRITES)
@pytest.mark.case("online 27-29")
@pytest.mark.case("catalog 98")
def test_given_writers_before_during_and_behind_a_backfill_then_the_index_is_that_of_the_rows(
    before: list[tuple[bytes | str, str | None]],
    during: list[tuple[bytes | str, str | None]],
    behind: list[tuple[bytes | str, str | None]],
) -> None:
    small = RegionLimits(memtable_bytes=1_500)
    writers = Writers(new_region(MemoryDisk(MemoryStore()), small))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FAN_IN", 2)  # so that a short history merges
        writers.run(before, keeps_index=False)
        writers.region.set_schema(SCHEMA, MARK)
        seen = values_of(writers.region)

        writers.run(during, keeps_index=True)
        assert writers.region.file_ingest.ingest(built(writers.region, seen))
        writers.region.set_schema(SCHEMA, close=[MARK])
        writers.run(behind, keeps_index=True)

    region = writers.region
    assert {key: row[1] for key, row in contents(region).items()} == {
        key: value.decode() for key, value in writers.rows.items()
    }
    expected = {entry_key(value, key): key for key, value in writers.rows.items()}
    assert entries_of(region) == expected
    for entry in expected:
        with pytest.raises(MetaError):
            write_mixed(region, f"taken {entry!r}", {(INDEX, entry): b"z"}, {(INDEX, entry): 0})
