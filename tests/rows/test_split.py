"""Parts of a statement: each row in its region, exactly what a region takes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.elements.states import ElementState
from base.errors import Refused
from base.rows.convert import to_batch
from base.rows.layout import Layout
from base.rows.split import body_of, newest_of_each_key, split, with_keys
from base.schema.keycodec import encode
from base.wire.batches import HEADER_KEY, BatchHeader
from base.wire.tables import ConstraintBody
from tests.sdk.samples import small
from tests.sdk.shapes import layout_of, table_of


def layout(regions: int) -> Layout:
    return layout_of(small(regions))


@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(1, 7))
def test_given_rows_when_split_then_each_is_once_in_the_region_of_its_key(
    ids: set[int], regions: int
) -> None:
    table = layout(regions)

    parts = split(table, to_batch(table, [{"id": id, "note": str(id)} for id in ids]), "insert")

    found = [(part.number, row) for part in parts for row in part.rows.to_pylist()]
    assert sorted(row["c1"] for _, row in found) == sorted(ids)
    for number, row in found:
        assert row["_key"] == encode(table.key_types, [row["c1"]])
        assert number == table.number_of([row["c1"]])
        assert (row["_op"], row["_expect"], row["c2"]) == (0, 0, str(row["c1"]))


def test_given_an_upsert_or_a_delete_when_split_then_nothing_is_expected_of_the_key() -> None:
    table = layout(1)
    rows = to_batch(table, [{"id": 1}])

    (put,), (delete,) = split(table, rows, "upsert"), split(table, rows, "delete")

    assert put.rows.schema.names == ["_key", "_op", "c1", "c2"]
    assert delete.rows.schema.names == ["_key", "_op"]
    assert delete.rows.column("_op").to_pylist() == [1]


def test_given_no_rows_when_split_then_there_are_no_parts() -> None:
    table = layout(3)

    assert split(table, to_batch(table, []), "insert") == []


def test_given_a_key_twice_when_split_then_it_is_refused() -> None:
    table = layout(3)

    with pytest.raises(Refused):
        split(table, to_batch(table, [{"id": 1}, {"id": 1}]), "upsert")


def test_given_a_key_twice_in_a_load_then_the_last_row_stays() -> None:
    table = layout(1)
    rows = to_batch(table, [{"id": 1, "note": "old"}, {"id": 2}, {"id": 1, "note": "new"}])

    kept = newest_of_each_key(with_keys(table, rows, "upsert"))

    assert kept.column("c1").to_pylist() == [2, 1]
    assert kept.column("c2").to_pylist() == [None, "new"]


def test_given_a_part_when_made_a_body_then_it_reads_back_with_its_header() -> None:
    table = layout(1)
    (part,) = split(table, to_batch(table, [{"id": 1, "note": "n"}]), "insert")
    header = BatchHeader(table_id=1024, schema_version=1, epoch=3, statement_id="s")

    with pa.ipc.open_stream(body_of(part.rows, header)) as reader:
        found = BatchHeader.model_validate_json(reader.schema.metadata[HEADER_KEY])
        rows = reader.read_all()

    assert found == header
    assert rows.to_pylist() == part.rows.to_pylist()


@pytest.mark.parametrize(
    ("kind", "holds", "refused"),
    [("check", True, True), ("not-null", False, True), ("not-null", True, False)],
)
def test_given_a_constraint_when_split_then_only_what_regions_hold_themselves_is_taken(
    kind: str, holds: bool, refused: bool
) -> None:
    said = {"id": 1, "name": "c", "kind": kind, "columns": ("note",), "holds": holds}
    body = table_of(small(1))
    constraint = ConstraintBody.model_validate({**said, "state": ElementState.WRITE_ONLY})
    table = Layout.of(body.model_copy(update={"constraints": (constraint,)}))
    rows = to_batch(table, [{"id": 1}])

    assert len(split(table, rows, "delete")) == 1
    if not refused:
        assert len(split(table, rows, "insert")) == 1
        return
    with pytest.raises(Refused, match="through a frontend"):
        split(table, rows, "insert")
