"""Filters of keys: none that is there is excluded, and few that are not are looked for."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.files import key_filter
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.files.key_filter import BITS_OF_A_KEY, KeyFilter
from dataplane.region.format.columns import PUT, file_schema
from dataplane.region.format.row_hash import Hashes, hashes_of
from tests.dataplane.region.rig import SPEC


def hashed(keys: list[bytes]) -> Hashes:
    return hashes_of(pa.array(keys, pa.binary()))


@given(st.sets(st.binary(max_size=12), max_size=60))
def test_given_keys_when_filtered_then_each_may_be_there(keys: set[bytes]) -> None:
    hashes = hashed(sorted(keys))

    assert KeyFilter.of(hashes).may_hold(hashes).all()


def test_given_many_keys_when_others_are_asked_for_then_few_are_taken_for_them() -> None:
    made = KeyFilter.of(hashed([b"k%d" % one for one in range(20_000)]))

    wrong = made.may_hold(hashed([b"x%d" % one for one in range(20_000)]))

    assert made.nbytes == 20_000 * BITS_OF_A_KEY // 8
    assert np.count_nonzero(wrong) < 30  # 9 are expected


@given(st.sets(st.binary(max_size=12), min_size=1, max_size=60))
@pytest.mark.slow
def test_given_absent_keys_when_asked_for_one_by_one_then_the_answer_is_that_for_all(
    keys: set[bytes],
) -> None:
    made = KeyFilter.of(hashed(sorted(keys)))
    asked = hashed([b"a%d" % one for one in range(2_000)])

    each = [made.may_hold(asked[at : at + 1])[0] for at in range(len(asked))]

    assert each == made.may_hold(asked).tolist()


def file_of(versions: dict[bytes, list[int]]) -> FileReader:
    """One row for each version, newest first."""
    disk = MemoryDisk(MemoryStore())
    disk.make_folder("/r/data")
    rows = [(key, version) for key in sorted(versions) for version in sorted(versions[key])[::-1]]
    keys, stamps = [key for key, _ in rows], [version for _, version in rows]
    columns = [keys, stamps, [PUT] * len(rows), stamps, ["x"] * len(rows)]
    schema = file_schema(SPEC.columns)
    arrays = [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
    target = FileTarget(disk, "/r", "data/1-1-1.parquet", SPEC.columns)
    entry = write_rows(target, [pa.table(arrays, schema=schema)])
    return FileReader(FileSource(disk, "/r", BlockCache()), entry)


@pytest.mark.parametrize("filter_keys", [1, 3_000, 1 << 20])
def test_given_row_groups_and_filters_when_read_by_key_then_all_versions_are_found(
    filter_keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key whose versions stand in two row groups with a filter each is found once."""
    monkeypatch.setattr(key_filter, "FILTER_KEYS", filter_keys)
    versions = {b"%05d" % one: [1] for one in range(0, 5_000, 2)}
    versions[b"02000"] = list(range(1, 3_000))
    reader = file_of(versions)
    absent = [b"%05d" % one for one in range(1, 5_000, 2)]

    few = reader.rows_of([b"00000", b"00001", b"02000", b"04998"], ())
    many = reader.rows_of(sorted([*versions, *absent]), ())

    assert few.num_rows == 1 + 2_999 + 1
    assert many.num_rows == len(versions) - 1 + 2_999
    assert reader.rows_of([b"02000"], ()).column("_version").to_pylist() == [*range(2_999, 0, -1)]


def test_given_absent_keys_when_read_then_no_row_group_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = file_of({b"%05d" % one: [1] for one in range(0, 5_000, 2)})
    looked: list[int] = []
    decoded = FileReader._decoded

    def noted(self: FileReader, footer: object, group: int, names: object) -> pa.RecordBatch:
        looked.append(group)
        return decoded(self, footer, group, names)  # type: ignore[arg-type]

    monkeypatch.setattr(FileReader, "_decoded", noted)

    found = reader.rows_of([b"%05d" % one for one in range(1, 1_001, 2)], ())

    assert found.num_rows == 0
    assert len(looked) <= 2
