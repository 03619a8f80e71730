"""Parts of a load: each row in the region of its key, and bodies that a region takes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.rows.layout import Layout
from metasrv_base.rows.split import RegionPart, body_of, by_region, newest_of_each_key
from metasrv_base.schema.keybatch import encode_batch
from metasrv_base.schema.keycodec import encode
from metasrv_base.wire.node.batches import HEADER_KEY, BatchHeader
from tests.metasrv.sdk.samples import small
from tests.metasrv.sdk.shapes import layout_of


def parts_of(table: Layout, ids: list[int], notes: list[str | None]) -> list[RegionPart]:
    rows = pa.RecordBatch.from_pydict(
        {"c1": pa.array(ids, pa.int64()), "c2": pa.array(notes, pa.string())}
    )
    return by_region(table, rows, rows.add_column(0, "_key", keys_of(table, rows)))


def keys_of(table: Layout, rows: pa.RecordBatch) -> pa.Array:
    return encode_batch(table.key_types, [rows.column("c1")])


@pytest.mark.slow
@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(1, 7))
def test_given_rows_when_split_then_each_is_once_in_the_region_of_its_key(
    ids: set[int], regions: int
) -> None:
    table = layout_of(small(regions))

    parts = parts_of(table, list(ids), [str(id) for id in ids])

    found = [(part.number, row) for part in parts for row in part.rows.to_pylist()]
    assert sorted(row["c1"] for _, row in found) == sorted(ids)
    for number, row in found:
        assert row["_key"] == encode(table.key_types, [row["c1"]])
        assert number == table.number_of([row["c1"]])
        assert row["c2"] == str(row["c1"])


def test_given_no_rows_when_split_then_there_are_no_parts() -> None:
    assert parts_of(layout_of(small(3)), [], []) == []


def test_given_a_key_twice_in_a_load_then_the_last_row_stays() -> None:
    (part,) = parts_of(layout_of(small()), [1, 2, 1], ["old", None, "new"])

    kept = newest_of_each_key(part.rows)

    assert kept.column("c1").to_pylist() == [2, 1]
    assert kept.column("c2").to_pylist() == [None, "new"]


def test_given_a_part_when_made_a_body_then_it_reads_back_with_its_header() -> None:
    (part,) = parts_of(layout_of(small()), [1], ["n"])
    header = BatchHeader(table_id=1024, schema_version=1, epoch=3, statement_id="s")

    with pa.ipc.open_stream(body_of(part.rows, header)) as reader:
        found = BatchHeader.model_validate_json(reader.schema.metadata[HEADER_KEY])
        rows = reader.read_all()

    assert found == header
    assert rows.to_pylist() == part.rows.to_pylist()
