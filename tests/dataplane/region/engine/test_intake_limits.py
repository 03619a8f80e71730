"""Limits of keys and rows: refused early by name, and manifests stay small whatever the keys."""

import pyarrow as pa
import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.key_range import BOUND_BYTES_MAX, lower_bound, upper_bound
from dataplane.region.indexes.index_entries import IndexDef, entry_keys
from dataplane.region.manifests import manifest as manifests
from dataplane.region.manifests.manifest import publish_manifest, read_current_manifest
from metasrv_base.errors import Refused
from metasrv_base.wire.limits import ENTRY_KEY_BYTES_MAX, KEY_BYTES_MAX, ROW_BYTES_MAX
from tests.dataplane.region.rig import REGION_ID, SPEC, A, by_key, contents, order, place, write


def test_given_a_long_key_when_written_then_it_is_refused_by_the_name_of_the_limit() -> None:
    region = Region.create(place(), SPEC, epoch=1)
    write(region, "s-1", {b"k" * KEY_BYTES_MAX: (1, "x")})

    with pytest.raises(Refused) as refusal:
        write(region, "s-2", {b"a": (1, "x"), b"k" * (KEY_BYTES_MAX + 1): (1, "x")})

    facts = {"limit": "key_bytes", "limit_bytes": KEY_BYTES_MAX, "found_bytes": KEY_BYTES_MAX + 1}
    assert refusal.value.code == "limit-exceeded"
    assert refusal.value.facts == facts
    assert len(contents(region)) == 1


def test_given_a_large_row_when_written_then_it_is_refused_by_the_name_of_the_limit() -> None:
    region = Region.create(place(), SPEC, epoch=1)

    with pytest.raises(Refused) as refusal:
        write(region, "s-1", {b"a": (1, None), b"b": (1, "x" * ROW_BYTES_MAX)})

    assert (refusal.value.code, refusal.value.facts["limit"]) == ("limit-exceeded", "row_bytes")


def test_given_many_rows_beyond_the_limit_of_one_when_written_then_they_are_taken() -> None:
    region = Region.create(place(), SPEC, epoch=1)

    applied = write(region, "s-1", {b"%d" % n: (n, "x" * (ROW_BYTES_MAX // 2)) for n in range(4)})

    assert applied.rows == 4


def test_given_long_values_when_indexed_then_the_job_is_told_of_the_limit() -> None:
    columns = (ColumnDef(id=1, type="string", nullable=True),)
    index = IndexDef(7, columns, unique=True)
    rows = pa.table({"_key": pa.array([b"a"]), "c1": pa.array(["x" * ENTRY_KEY_BYTES_MAX])})

    with pytest.raises(Refused) as refusal:
        entry_keys(rows, index)

    assert refusal.value.facts["limit"] == "entry_key_bytes"
    assert refusal.value.facts["index"] == 7


@pytest.mark.parametrize(
    "key", [b"", b"a", b"k" * BOUND_BYTES_MAX, b"k" * 4096, b"k\xff" * 99, b"\xff" * 99]
)
def test_given_a_key_when_bounds_are_made_then_they_are_short_and_around_it(key: bytes) -> None:
    low, high = lower_bound(key), upper_bound(key)

    assert low <= key <= high
    assert len(low) <= BOUND_BYTES_MAX
    assert len(high) <= BOUND_BYTES_MAX or set(key) == {0xFF}


def test_given_long_keys_alike_when_flushed_then_each_is_found_and_bounds_are_short() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    keys = [b"k" * 4000 + b"%d" % n for n in range(3)]
    for n, key in enumerate(keys):
        write(region, f"s-{n}", {key: (n, None)})
        region.maintenance.flush()

    region.close()
    again = Region.open(place(disk), order(2))

    assert all(len(file.max_key) == 2 * BOUND_BYTES_MAX for file in again.manifest.files)
    assert by_key(again, *keys) == {key: (n, None) for n, key in enumerate(keys)}
    assert list(contents(again)) == keys


def test_given_a_manifest_beyond_one_read_when_read_then_it_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    monkeypatch.setattr(manifests, "MANIFEST_BYTES_MAX", 100)

    found = read_current_manifest(disk, A, REGION_ID)

    assert found == region.manifest


def test_given_a_manifest_beyond_its_limit_when_published_then_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    before = disk.list(A)
    monkeypatch.setattr(manifests, "MANIFEST_BYTES_MAX", 100)

    with pytest.raises(AssertionError, match="limits of keys"):
        publish_manifest(disk, A, region.manifest.model_copy(update={"number": 2}))

    assert disk.list(A) == before
