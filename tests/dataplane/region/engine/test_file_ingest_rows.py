"""Rows that a job brings: taken once, in one manifest; whatever was written since wins."""

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.compaction.compaction import FAN_IN
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import PUT, file_schema
from dataplane.region.format.families import ROWS
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.adoption import Ingest, data_file
from dataplane.region.manifests.marks import version_of_mark
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict, Refused
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, cut_short
from tests.dataplane.region.rig import (
    SPEC,
    A,
    B,
    Contents,
    by_key,
    contents,
    order,
    place,
    version_of,
    write,
)
from tests.fakes.clock import FakeClock

MARK = "p-1"
ATTEMPT = "attempts/p-1-x"
KNOWN = RegionSchema(1, 1, SPEC.columns)
BROUGHT: Contents = {b"a": (10, "new"), b"b": (20, "new"), b"d": (40, "new")}


def reserved(region: Region, mark: str = MARK) -> int:
    return region.set_schema(KNOWN, mark, reserves=True)


def brought(region: Region, rows: Contents, attempt: str = ATTEMPT) -> Ingest:
    """Writes *rows* as a job does, all of the version that was reserved."""
    disk, root = region.place.disk, region.place.root
    version = version_of_mark(region.manifest, MARK) or 0
    disk.make_folder(f"{root}/{attempt}")
    ordered = sorted(rows)
    count = len(ordered)
    columns = [
        ordered,
        [version] * count,
        [PUT] * count,
        [rows[key][0] for key in ordered],
        [rows[key][1] for key in ordered],
    ]
    schema = file_schema(SPEC.columns)
    arrays = [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
    target = FileTarget(disk, root, f"{attempt}/1.parquet", SPEC.columns)
    file = data_file(write_rows(target, [pa.table(arrays, schema=schema)]))
    return Ingest(MARK, attempt, ROWS, MARK, [file])


def made_region(disk: MemoryDisk, limits: RegionLimits | None = None) -> Region:
    """Rows in a file and in memory, and the version that a job's rows are to bear."""
    region = Region.create(place(disk, limits=limits), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "old"), b"b": (2, "old")})
    region.maintenance.flush()
    write(region, "s-2", {b"c": (3, "old"), b"b": (2, "older")})
    reserved(region)
    return region


@pytest.fixture
def region() -> Region:
    return made_region(MemoryDisk(MemoryStore()))


def test_given_rows_of_a_job_when_taken_then_they_replace_what_was_there_before(
    region: Region,
) -> None:
    before = contents(region)
    source = brought(region, BROUGHT)
    assert contents(region) == before, "nothing shows before it is taken"

    assert region.file_ingest.ingest(source)
    assert not region.file_ingest.ingest(source), "once"

    assert contents(region) == before | BROUGHT
    assert by_key(region, b"b", b"d") == {b"b": (20, "new"), b"d": (40, "new")}
    again = Region.open(region.place, order(2))
    assert contents(again) == before | BROUGHT
    assert not again.file_ingest.ingest(source)


@pytest.mark.parametrize("flushes", [False, True])
def test_given_rows_written_behind_the_version_when_taken_then_those_stay(
    region: Region, flushes: bool
) -> None:
    source = brought(region, BROUGHT)
    write(region, "s-3", {b"a": (5, "newer"), b"b": None, b"d": None, b"e": (6, None)})
    if flushes:
        region.maintenance.flush()
        for number in range(4):
            write(region, f"t-{number}", {b"t": None})
            region.maintenance.flush()
        region.maintenance.compact()
    expected = {b"a": (5, "newer"), b"c": (3, "old"), b"e": (6, None)}

    region.file_ingest.ingest(source)
    region.set_schema(KNOWN, close=[MARK])

    assert contents(region) == expected
    region.maintenance.flush()
    while region.maintenance.compact():
        pass
    assert contents(region) == expected
    with pytest.raises(Conflict):
        write(region, "s-4", {b"c": (0, None)}, {b"c": 0})
    write(region, "s-5", {b"b": (0, None)}, {b"b": 0})


def test_given_rows_that_were_taken_when_a_batch_expects_then_it_is_their_version_that_counts(
    region: Region,
) -> None:
    region.file_ingest.ingest(brought(region, BROUGHT))
    version = version_of_mark(region.manifest, MARK)

    assert version_of(region, b"d") == version
    with pytest.raises(Conflict):
        write(region, "s-3", {b"d": (0, None)}, {b"d": 0})
    write(region, "s-4", {b"d": (1, "next")}, {b"d": version or 0})

    assert by_key(region, b"d") == {b"d": (1, "next")}


def test_given_a_version_that_is_reserved_when_asked_again_then_it_is_the_same_and_no_row_has_it(
    region: Region,
) -> None:
    version = reserved(region)
    written = write(region, "s-3", {b"x": (1, None)})

    assert reserved(region) == version == version_of_mark(region.manifest, MARK)
    assert version_of(region, b"b") < version < written.version
    again = Region.open(region.place, order(2))
    assert reserved(again) == version


def test_given_a_region_without_rows_when_rows_come_then_they_are_all_it_has() -> None:
    region = Region.create(place(), SPEC, epoch=1)
    assert reserved(region) > 0

    region.file_ingest.ingest(brought(region, BROUGHT))

    assert contents(region) == BROUGHT


def test_given_files_that_are_prepared_when_a_crash_comes_then_they_can_still_be_taken(
    region: Region,
) -> None:
    disk = region.place.disk
    assert isinstance(disk, MemoryDisk)
    source = brought(region, BROUGHT)
    region.file_ingest.prepare(source)
    assert region.manifest.adopted == ()
    disk.store.crash()

    again = Region.open(place(MemoryDisk(disk.store)), order(1))
    assert again.file_ingest.ingest(source)

    assert contents(again).items() >= BROUGHT.items()


def test_given_what_may_not_come_in_when_offered_then_it_is_refused(region: Region) -> None:
    before, version = contents(region), version_of_mark(region.manifest, MARK) or 0
    source = brought(region, BROUGHT)
    other = [source.files[0].model_copy(update={"min_version": version - 1})]
    later = [source.files[0].model_copy(update={"max_version": version + 1})]
    large = [source.files[0].model_copy(update={"bytes": 1})]

    for files in (other, later, large):
        with pytest.raises(Refused):
            region.file_ingest.prepare(Ingest(MARK, ATTEMPT, ROWS, MARK, files))
    with pytest.raises(Conflict) as refusal:
        region.file_ingest.ingest(Ingest(MARK, ATTEMPT, ROWS, "another", source.files))
    assert refusal.value.code == "version-mismatch"
    region.set_schema(RegionSchema(2, 1, SPEC.columns, frozenset({3})))
    with pytest.raises(Refused):
        region.file_ingest.ingest(source)
    assert region.manifest.adopted == ()
    assert contents(region) == before
    region.set_schema(RegionSchema(3, 1, SPEC.columns, dead=frozenset({3})))
    assert region.file_ingest.ingest(source), "an index that is gone is in nobody's way"


def test_given_somebody_who_reads_as_of_a_later_moment_when_rows_come_then_they_wait(
    region: Region,
) -> None:
    source = brought(region, BROUGHT)
    region.set_schema(KNOWN, "freeze")

    with pytest.raises(Conflict):
        region.file_ingest.ingest(source)
    region.close_mark("freeze")

    assert region.file_ingest.ingest(source)


def test_given_a_takeover_before_the_rows_are_taken_when_brought_anew_then_the_version_is_the_same(
    region: Region,
) -> None:
    disk = region.place.disk
    assert isinstance(disk, MemoryDisk)
    version = version_of_mark(region.manifest, MARK)
    brought(region, BROUGHT)
    write(region, "s-3", {b"a": (5, "newer")})

    taken = Region.open(place(disk, B), order(2, A))
    assert reserved(taken) == version
    taken.file_ingest.ingest(brought(taken, BROUGHT))

    assert contents(taken) == {**BROUGHT, b"a": (5, "newer"), b"c": (3, "old")}


def test_given_a_takeover_behind_the_taking_when_it_is_done_again_then_the_rows_are_the_same(
    region: Region,
) -> None:
    """Whether a leader before had taken them nobody knows any more: the same rows come twice."""
    disk = region.place.disk
    assert isinstance(disk, MemoryDisk)
    region.file_ingest.ingest(brought(region, BROUGHT))
    write(region, "s-3", {b"a": None})
    before = contents(region)

    taken = Region.open(place(disk, B), order(2, A))
    taken.file_ingest.ingest(brought(taken, BROUGHT))
    taken.set_schema(KNOWN, close=[MARK])

    assert contents(taken) == before


@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
@pytest.mark.slow
def test_given_power_loss_before_any_operation_when_taken_again_then_all_or_nothing_is_there(
    device: str,
) -> None:
    """From the reservation of the version to the end, over rows that are there."""
    store = MemoryStore()
    disk = MemoryDisk(store)
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "old"), b"c": (3, "old")})
    before = contents(region)

    def act(life: Life) -> None:
        take(Region.open(place(life.disk), order(1)), "attempts/first")

    lives = list(cut_short(store, device, act))
    for _, left in lives:
        opened = Region.open(place(MemoryDisk(left)), order(1))
        assert contents(opened) in (before, before | BROUGHT)
        take(opened, "attempts/second")
        assert contents(opened) == before | BROUGHT
        assert opened.manifest.marks == ()

    assert len(lives) > 20


def take(region: Region, attempt: str) -> None:
    reserved(region)
    region.file_ingest.ingest(brought(region, BROUGHT, attempt))
    region.set_schema(KNOWN, close=[MARK])


# ---- any writers beside it -----------------------------------------------------------------------

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
ACTIONS = st.one_of(
    st.tuples(st.just("put"), KEYS),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.sampled_from(["flush", "merge", "reopen", "power loss"]), st.just(b"")),
)


@dataclass
class Model:
    """A dict beside the region. What a job brings is put where nobody wrote since."""

    region: Region
    disk: MemoryDisk
    rows: Contents = field(default_factory=dict)
    written: set[bytes] = field(default_factory=set)
    statements: int = 0

    def act(self, action: str, key: bytes) -> None:
        match action:
            case "put" | "delete":
                self.statements += 1
                value = None if action == "delete" else (self.statements, None)
                write(self.region, f"s-{self.statements}", {key: value})
                self.written.add(key)
                self.rows.pop(key, None)
                if value is not None:
                    self.rows[key] = value
            case "flush":
                self.region.maintenance.flush()
            case "merge":
                self.region.maintenance.flush()
                self.region.maintenance.compact()
            case _:
                if action == "power loss":
                    self.disk.store.crash(torn=self.statements)
                self.region = Region.open(self.region.place, order(1))

    def take(self) -> None:
        self.region.file_ingest.ingest(brought(self.region, BROUGHT))
        self.rows |= {key: row for key, row in BROUGHT.items() if key not in self.written}

    def check(self) -> None:
        assert contents(self.region) == self.rows
        assert by_key(self.region, b"a", b"b", b"c", b"d") == self.rows


@pytest.mark.slow
@settings(max_examples=25)
@given(*[st.lists(ACTIONS, max_size=6)] * 3)
def test_given_any_writes_around_it_when_rows_are_taken_then_the_region_is_as_the_model(
    before: list[tuple[str, bytes]],
    beside: list[tuple[str, bytes]],
    after: list[tuple[str, bytes]],
) -> None:
    disk = MemoryDisk(MemoryStore())
    where = place(disk, clock=FakeClock(), limits=RegionLimits(memtable_bytes=1_500))
    model = Model(Region.create(where, SPEC, epoch=1), disk)
    for one in before:
        model.act(*one)
    reserved(model.region)
    model.written.clear()
    for one in beside:
        model.act(*one)
    model.take()
    model.check()
    model.region.set_schema(KNOWN, close=[MARK])
    for one in after:
        model.act(*one)
        model.check()


def test_given_files_of_jobs_alone_when_merged_then_the_region_makes_its_folder() -> None:
    region = Region.create(place(MemoryDisk(MemoryStore())), SPEC, epoch=1)
    expected: Contents = {}
    for number in range(FAN_IN):
        reserved(region)
        rows: Contents = {b"%d" % number: (number, "brought")}
        one = replace(brought(region, rows, f"attempts/p-{number}-x"), procedure=f"p-{number}")
        region.file_ingest.ingest(one)
        region.set_schema(KNOWN, close=[MARK])
        expected |= rows

    merged = region.maintenance.compact()

    assert merged is not None
    assert merged.files == FAN_IN
    assert contents(region) == expected
    assert contents(Region.open(region.place, order(2))) == expected
