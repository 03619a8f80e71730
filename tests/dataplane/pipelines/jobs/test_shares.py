"""Rows between the tasks of a job: what is left arrives, or nothing does."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.pipelines.jobs.executor import Output
from dataplane.pipelines.jobs.shares import ShareFile, read_shares, write_shares
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.format.checksum import RowsDigest
from dataplane.region.format.columns import DELETE, PUT, ColumnDef, file_schema
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.stored_digest import digest_stored
from metasrv_base.errors import Unavailable
from tests.dataplane.pipelines.jobs.region_data import EVERY_TYPE, flip_a_bit

SHARES = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.binary(max_size=3), max_size=5).map(sorted)),
    max_size=8,
)


def keyed(keys: list[bytes]) -> pa.Table:
    schema, count = file_schema(()), len(keys)
    return pa.table([keys, list(range(count)), [PUT] * count], schema=schema)


def keys_of(tables: list[pa.Table]) -> list[bytes]:
    return [key for table in tables for key in table.column("_key").to_pylist()]


@given(shares=SHARES, low=st.binary(max_size=2), high=st.none() | st.binary(max_size=2))
def test_given_any_shares_when_read_then_each_output_has_its_rows_and_its_range(
    shares: list[tuple[int, list[bytes]]], low: bytes, high: bytes | None
) -> None:
    disk = MemoryDisk(MemoryStore())
    disk.make_folder("/root")
    output = Output(disk, "/root", "attempts/a/t")

    file = write_shares(output, ((number, keyed(keys)) for number, keys in shares))

    for number in range(4):
        own = [key for place, keys in shares if place == number for key in keys]
        assert keys_of(list(read_shares(disk, [file], number))) == own
        cut = list(read_shares(disk, [file], number, KeyRange(low, high)))
        assert keys_of(cut) == [key for key in own if low <= key and (high is None or key < high)]


def test_given_every_type_when_shared_then_not_a_bit_has_changed(tmp_path: Path) -> None:
    columns = [
        ColumnDef(id=number, type=name, nullable=True)
        for number, name in enumerate(EVERY_TYPE, start=1)
    ]
    schema = file_schema(columns)
    values = [[b"a", b"b", b"c"], [3, 2, 1], [PUT, DELETE, PUT], *EVERY_TYPE.values()]
    table = pa.table(
        [pa.array(v, f.type) for v, f in zip(values, schema, strict=True)], schema=schema
    )

    file = shared(tmp_path, table, table.slice(1, 1))
    parts = list(read_shares(LocalDisk(), [file], 0))

    assert sum(map(digest_stored, parts), RowsDigest()) == sum(
        map(digest_stored, (table, table.slice(1, 1))), RowsDigest()
    )
    assert pa.concat_tables(parts).schema == schema


@pytest.mark.parametrize("place", ["rows", "index", "gone"])
def test_given_a_share_that_is_damaged_or_gone_when_read_then_the_job_is_to_be_tried_again(
    tmp_path: Path, place: str
) -> None:
    file = shared(tmp_path, keyed([b"%04d" % number for number in range(1000)]))
    path = tmp_path / file.name
    if place == "gone":
        os.remove(path)
    elif place == "rows":
        flip_a_bit(path)
    else:
        data = bytearray(path.read_bytes())
        data[file.index.start + 100] ^= 1
        path.write_bytes(data)

    with pytest.raises(Unavailable) as failure:
        list(read_shares(LocalDisk(), [file], 0))

    assert failure.value.code == "not-ready"
    assert failure.value.facts["path"] == str(path)


def shared(root: Path, *tables: pa.Table) -> ShareFile:
    output = Output(LocalDisk(), str(root), "attempts/a/t")
    return write_shares(output, ((0, table) for table in tables))
