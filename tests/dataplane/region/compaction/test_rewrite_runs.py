"""A merge writes several files where one would have too large a footer, and they count as one."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.compaction.compaction import RUNS_MIN
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files import file_writer, split
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileReader
from dataplane.region.files.split import FileSplitter, groups_max
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize
from dataplane.region.manifests.manifest import Manifest
from dataplane.region.memory.budget import MERGE, MemoryBudget
from dataplane.region.place import RegionPlace
from tests.dataplane.region.rig import SPEC, Row, contents, order, place, write
from tests.dataplane.region.watched_budget import WatchedBudget

FILES, ROWS = 4, 40
ROW_BYTES = 30_000
GROUPS = 3
"""The most row groups of a file here."""


@pytest.fixture
def short_footers(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = len(SPEC.columns) + 3
    most = GROUPS * columns * file_writer.GROUP_COLUMN_BYTES
    monkeypatch.setattr(split, "FOOTER_BYTES_MAX", most)


def filled(at: RegionPlace | None = None) -> tuple[Region, dict[bytes, Row]]:
    """A region with `FILES` files that are due to be merged, and its rows."""
    region = Region.create(at or place(), SPEC, 1)
    rows: dict[bytes, Row] = {}
    for file in range(FILES):
        some: dict[bytes, Row] = {b"%03d-%d" % (at, file): (at, _text()) for at in range(ROWS)}
        write(region, f"s-{file}", some)
        region.maintenance.flush()
        rows |= some
    return region, rows


def _text() -> str:
    return os.urandom(ROW_BYTES // 2).hex()  # so that files are as large as their rows


def row_groups(manifest: Manifest, region: Region) -> list[int]:
    readers = (FileReader(region.place.files, file) for file in manifest.files)
    return [len(reader._footer().bounds) for reader in readers]


@pytest.mark.usefixtures("short_footers")
def test_given_many_row_groups_when_merged_then_the_footer_of_each_file_is_bounded() -> None:
    region, rows = filled()

    done = region.maintenance.compact()

    files = region.manifest.files
    assert done is not None
    assert done.bytes_written == sum(file.bytes for file in files)
    assert max(row_groups(region.manifest, region)) <= GROUPS
    assert {file.run for file in files} == {files[0].name}
    ranges = sorted((file.min_key, file.max_key) for file in files)
    assert all(low[1] < high[0] for low, high in pairwise(ranges))
    assert not region.maintenance.compact(), "they are one run"
    again = Region.open(region.place, order(2))
    assert contents(region) == contents(again) == rows
    names = region.place.disk.list(f"{region.place.root}/data")
    assert len(names) == len(files), "the inputs are gone"


@pytest.mark.usefixtures("short_footers")
def test_given_runs_of_several_files_when_merged_again_then_one_run_is_left() -> None:
    region, rows = filled()
    region.maintenance.compact()
    once = len(region.manifest.files)
    for file in range(FILES * FILES):
        some: dict[bytes, Row] = {b"%03d" % at: (file, _text()) for at in range(ROWS)}
        write(region, f"t-{file}", some)
        rows |= some
        region.maintenance.flush()
        while region.maintenance.compact():
            pass

    assert len({file.run or file.name for file in region.manifest.files}) < FILES
    assert len(region.manifest.files) > once
    assert max(row_groups(region.manifest, region)) <= GROUPS
    assert contents(region) == rows


@pytest.mark.usefixtures("short_footers")
def test_given_a_run_of_several_files_when_scanned_then_memory_is_that_of_one_of_them() -> None:
    region, _ = filled()
    region.maintenance.compact()
    asked: list[int] = []
    list(region.reader.scan(reserve=asked.append))
    first = min(region.manifest.files, key=lambda file: file.min_key)
    one = KeyRange(b"", bytes.fromhex(first.max_key))

    list(region.reader.scan(one, reserve=asked.append))

    whole, of_one = asked
    assert len(region.manifest.files) > 2
    assert whole <= 1.5 * of_one


class CountingDisk(MemoryDisk):
    """Counts reads of footers, by path."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.footers: Counter[str] = Counter()
        self.lengths: dict[str, int] = {}

    def read(self, path: str, offset: int, length: int) -> bytes:
        self.footers[path] += length == self.lengths.get(path)
        return super().read(path, offset, length)


@pytest.mark.usefixtures("short_footers")
@pytest.mark.parametrize("values", [False, True])
def test_given_a_run_of_several_files_when_a_page_is_read_then_other_footers_are_not(
    values: bool,
) -> None:
    disk = CountingDisk()
    region, rows = filled(replace(place(disk), cache=BlockCache(0)))
    region.maintenance.compact()
    root = region.place.root
    disk.lengths = {f"{root}/{file.name}": file.footer_bytes for file in region.manifest.files}
    second = sorted(rows)[1]

    page = region.reader.scan_values if values else region.reader.scan
    next(page(KeyRange(second)))

    assert len(region.manifest.files) > 2
    assert len(+disk.footers) == 1


def test_given_little_memory_when_merged_then_fewer_files_at_a_time_and_all_in_the_end() -> None:
    budget = WatchedBudget()
    region, rows = filled(replace(place(), budget=budget))
    whole = region.maintenance._fitting_merge(region.manifest)[1]
    budget.bytes_max = int((whole - 1) / MERGE)

    done = region.maintenance.compact()

    assert done is not None
    assert RUNS_MIN <= done.files < FILES
    assert budget.merged[-1] <= budget.merge_max or done.files == RUNS_MIN
    assert contents(region) == rows


def test_given_memory_that_is_taken_when_a_merge_is_due_then_it_waits_for_room() -> None:
    budget = WatchedBudget()
    region, rows = filled(replace(place(), budget=budget))
    size = region.maintenance._fitting_merge(region.manifest)[1]
    budget.bytes_max = 2 * size
    others = budget.share()

    others.set(int(1.5 * size))
    assert region.maintenance.compact() is None
    assert len(region.manifest.files) == FILES
    others.set(size // 2)

    assert region.maintenance.compact() is not None
    assert contents(region) == rows


@pytest.mark.parametrize("merge", [0, 100, 300, 500])
def test_given_a_merge_under_way_when_writes_are_refused_then_something_is_to_be_flushed(
    merge: int,
) -> None:
    budget = MemoryBudget(1_000)
    rows = budget.share()

    with budget.merging(merge):
        held = 0
        while not budget.is_full:
            held += 1
            rows.set(held)
        assert held + merge <= 1_000
        assert budget.excess >= held // 4, "or writers wait until the merge has ended"
        assert budget.is_to_flush(held)
        assert not budget.share().claim(1)


KEYS = st.lists(st.integers(0, 12), min_size=1, max_size=60).map(sorted)


def tables_of(keys: list[int], cuts: list[int]) -> Iterator[pa.Table]:
    rest = pa.table({"_key": pa.array([b"%03d" % key for key in keys], pa.binary())})
    for rows in cuts:
        yield rest.slice(0, rows)
        rest = rest.slice(rows)
    yield rest


@given(KEYS, st.lists(st.integers(0, 9), max_size=9), st.integers(1, 4), st.integers(1, 5))
def test_given_sorted_rows_when_split_then_no_key_is_in_two_files_and_each_is_full_but_the_last(
    keys: list[int], cuts: list[int], rows: int, groups: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "ROW_GROUP", PartSize(rows, 1 << 20))
        files = [[*parts] for parts in FileSplitter(tables_of(keys, cuts), groups)]

    of_files = [pa.concat_tables(parts).column("_key").to_pylist() for parts in files]
    assert [key for some in of_files for key in some] == [b"%03d" % key for key in keys]
    assert sum(len(set(some)) for some in of_files) == len(set(keys))
    assert all(len(parts) >= groups for parts in files[:-1])
    for parts in files:
        for before, after in zip(parts[groups - 1 :], parts[groups:], strict=False):
            assert before.column("_key")[-1] == after.column("_key")[0], "only to end a key"


@pytest.mark.parametrize("columns", [1, 4, 50, 1024])
def test_given_a_table_when_its_files_are_bounded_then_so_is_what_their_footers_take(
    columns: int,
) -> None:
    groups = groups_max(columns)
    empty = file_writer.writing_bytes(0, columns, 0)

    assert groups >= 1
    assert file_writer.writing_bytes(0, columns, groups) - empty <= split.FOOTER_BYTES_MAX
