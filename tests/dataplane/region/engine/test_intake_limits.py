"""Limits of keys and rows: refused early by name, and manifests stay small whatever the keys."""

import pyarrow as pa
import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.intake import take_in
from dataplane.region.engine.region import Region
from dataplane.region.engine.shape import BatchShape
from dataplane.region.format.columns import DELETE, PUT, ColumnDef, RegionSpec
from dataplane.region.format.key_range import BOUND_BYTES_MAX, lower_bound, upper_bound
from dataplane.region.indexes.index_entries import IndexDef, entry_keys
from dataplane.region.manifests import manifest as manifests
from dataplane.region.manifests.manifest import publish_manifest, read_current_manifest
from metasrv_base.errors import MetaError, Refused, Unavailable
from metasrv_base.wire.limits import (
    ENTRY_KEY_BYTES_MAX,
    KEY_BYTES_MAX,
    ROW_BYTES_MAX,
)
from tests.dataplane.region.rig import (
    REGION_ID,
    SPEC,
    A,
    batch,
    by_key,
    contents,
    header,
    order,
    place,
    write,
)

WIDE = tuple(ColumnDef(id=number, type="int64", nullable=number > 1) for number in range(1, 1_025))
LONG = (
    *SPEC.columns,
    ColumnDef(id=3, type="string", nullable=True, origin_default="x" * 1_000),
    ColumnDef(id=4, type="boolean", nullable=True),
)


def keys_alone(rows: int, op: int = DELETE) -> pa.RecordBatch:
    keys = pa.array([b"%08d" % number for number in range(rows)])
    return pa.RecordBatch.from_pydict({"_key": keys, "_op": pa.array([op] * rows, pa.uint8())})


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


def answer_to(columns: tuple[ColumnDef, ...], rows: pa.RecordBatch) -> object:
    region = Region.create(place(), RegionSpec(region_id=REGION_ID, columns=columns), epoch=1)
    (answer,) = region.writer.apply([(header("s-1"), rows)])
    assert region.log_history.end == (0 if isinstance(answer, MetaError) else 1)
    return answer


def test_given_keys_alone_when_they_are_too_large_with_all_columns_then_they_are_refused() -> None:
    answer = answer_to(WIDE, keys_alone(13_000))

    assert isinstance(answer, Refused)
    assert answer.code == "body-too-large"
    assert (answer.facts["limit"], answer.facts["limit_bytes"]) == ("record_bytes", 80 << 20)
    assert not isinstance(answer_to(WIDE, keys_alone(1_000)), MetaError)


def test_given_long_defaults_when_left_out_of_puts_then_they_count_and_in_deletes_they_do_not() -> (
    None
):
    columns = tuple(column.model_copy(update={"nullable": True}) for column in LONG)

    assert isinstance(answer_to(columns, keys_alone(90_000, PUT)), Refused)
    assert not isinstance(answer_to(columns, keys_alone(90_000)), MetaError)


@pytest.mark.parametrize("columns", [SPEC.columns, LONG, WIDE])
@pytest.mark.parametrize("op", [PUT, DELETE])
def test_given_a_batch_without_columns_when_sized_then_it_is_as_large_as_what_is_logged(
    columns: tuple[ColumnDef, ...], op: int
) -> None:
    shape = BatchShape([column.model_copy(update={"nullable": True}) for column in columns])
    rows = keys_alone(1_000, op)

    (part,) = take_in(rows, shape).parts

    assert shape.logged_bytes(rows) == pytest.approx(part.rows.nbytes, rel=0.01)


def test_given_a_group_beyond_the_largest_record_when_written_then_nothing_of_it_is_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = Region.create(place(), SPEC, epoch=1)
    monkeypatch.setattr("dataplane.region.engine.writer.RECORD_BYTES_MAX", 3_000)
    batches = [(header(f"s-{n}"), batch({b"k%d" % n: (n, "x" * 2_000)})) for n in range(2)]
    large = batch({b"a": (1, "x" * 3_000)})

    together = region.writer.order(batches)
    alone = region.writer.order([(header("s-3"), large)])

    assert (together.logged, alone.logged) == (None, None)
    assert all(isinstance(each, Unavailable) for each in region.writer.settle(together))
    (refusal,) = region.writer.settle(alone)
    assert isinstance(refusal, Refused)
    assert refusal.code == "body-too-large"
    assert contents(region) == {}
    for each in batches:
        assert not isinstance(region.writer.apply([each])[0], MetaError)


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
