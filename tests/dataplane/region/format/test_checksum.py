"""The checksum of rows: a stored format, independent of order, batching and absent columns."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.format.checksum import RowsDigest, digest_as_text, digest_rows, row_bytes
from dataplane.region.format.row_hash import FEW, LONG_BYTES, hash_of, hashes_of, hashes_of_keys
from dataplane.region.format.stored_digest import digest_as, digest_stored, stored_text, text_as
from metasrv_base.schema.types import arrow_type
from tests.dataplane.region.rig import batch

GOLDEN = Path(__file__).parents[3] / "golden" / "region" / "checksum.txt"
VALUES: dict[str, object] = {
    "boolean": True,
    "int8": -128,
    "int16": 7,
    "int32": -1,
    "int64": 2**63 - 1,
    "float32": 0.5,
    "float64": -0.0,
    "decimal(10,2)": Decimal("1.50"),
    "string": "ü\x00",
    "binary": b"\xff\x00",
    "date": date(2013, 1, 2),
    "timestamp(s)": datetime(2013, 1, 1, tzinfo=UTC),
    "timestamp(us)": datetime(2013, 1, 1, tzinfo=UTC),
}


def all_types() -> pa.RecordBatch:
    columns = {"_key": pa.array([b"k", b"k\x00"], pa.binary())}
    for column_id, (name, value) in enumerate(VALUES.items(), start=1):
        columns[f"c{column_id}"] = pa.array([value, None], arrow_type(name))
    return pa.RecordBatch.from_pydict(columns)


def golden_text() -> str:
    """The text of `checksum.txt`."""
    rows = all_types()
    lines = [repr(row) for row in row_bytes(rows, {}).to_pylist()]
    return "\n".join([*lines, digest_rows(rows).hex, ""])


def all_stored() -> pa.RecordBatch:
    rows = all_types().append_column("_version", pa.array([1, 2], pa.int64()))
    return rows.append_column("_op", pa.array([0, 1], pa.uint8()))


def stored_golden_text() -> str:
    """The contents of `stored_checksum.txt`: a checksum of each type alone, and one of all."""
    rows = all_stored()
    alone = [
        f"{name} {stored_text(digest_stored(rows.select(['_key', f'c{id}'])))}"
        for id, name in enumerate(VALUES, start=1)
    ]
    return "\n".join([*alone, f"all {stored_text(digest_stored(rows))}", ""])


def test_given_all_types_when_digested_then_it_is_as_it_was() -> None:
    assert golden_text() == GOLDEN.read_text()
    assert stored_golden_text() == GOLDEN.with_name("stored_checksum.txt").read_text()


def test_given_a_checksum_of_before_when_compared_then_it_is_made_as_it_was() -> None:
    rows = pa.Table.from_batches([all_stored()])
    old, new = digest_as_text(rows), digest_stored(rows)

    assert text_as(old.hex, digest_as(old.hex, rows)) == old.hex
    assert text_as(stored_text(new), digest_as(stored_text(new), rows)) == stored_text(new)


@pytest.mark.slow
@given(
    st.dictionaries(st.binary(max_size=3), st.tuples(st.integers(0, 9), st.text(max_size=9))),
    st.randoms(use_true_random=False),
)
def test_given_stored_rows_when_split_and_turned_then_the_sum_is_the_same(
    rows: dict[bytes, tuple[int, str | None]], chance: Random
) -> None:
    order = list(rows)
    chance.shuffle(order)
    turned = pa.Table.from_batches([batch({key: rows[key] for key in order})])
    cut = chance.randint(0, len(order))

    parts = [digest_stored(turned.slice(0, cut)), digest_stored(turned.slice(cut))]

    assert sum(parts, RowsDigest()) == digest_stored(batch(rows))


@given(st.lists(st.none() | st.binary(max_size=40), max_size=40), st.data())
def test_given_values_when_hashed_in_slices_then_each_has_one_hash(
    values: list[bytes | None], data: st.DataObject
) -> None:
    column = pa.array(values, pa.binary())
    start = data.draw(st.integers(0, len(values)))

    found = hashes_of(column).tolist()

    assert hashes_of(column.slice(start)).tolist() == found[start:]
    assert [hashes_of(pa.array([one], pa.binary()))[0] for one in values] == found
    assert len(set(found)) == len(set(values)), "none collides with another, nor with null"


@given(st.binary(max_size=40) | st.binary(min_size=LONG_BYTES - 9, max_size=LONG_BYTES + 9))
def test_given_one_value_when_hashed_then_its_hash_is_that_of_the_column(value: bytes) -> None:
    (expected,) = hashes_of(pa.array([value], pa.binary())).tolist()

    assert hash_of(value) == expected
    for count in (1, FEW, FEW + 1):
        assert hashes_of_keys([value] * count).tolist() == [expected] * count


def test_given_long_values_when_hashed_then_every_byte_counts() -> None:
    for length in (1, 7, 8, 9, LONG_BYTES, LONG_BYTES + 1, 1_000):
        flipped = [bytearray(length) for _ in range(length + 1)]
        for at in range(length):
            flipped[at][at] = 1
        found = hashes_of(pa.array([bytes(one) for one in flipped], pa.binary()))
        assert len(set(found.tolist())) == length + 1


def test_given_stored_values_that_run_together_when_digested_then_they_differ() -> None:
    rows = ({b"a": (1, "2")}, {b"a": (2, "1")}, {b"a": (12, "")}, {b"a": (12, None)})

    assert len({digest_stored(batch(one)).checksum for one in rows}) == len(rows)


def test_given_a_column_of_nulls_when_absent_then_the_stored_digest_is_the_same() -> None:
    rows = batch({b"a": (1, None)})

    assert digest_stored(rows.drop_columns(["c2"])) == digest_stored(rows)


@given(st.dictionaries(st.binary(max_size=3), st.tuples(st.integers(0, 9), st.text(max_size=2))))
@pytest.mark.slow
def test_given_rows_when_split_and_turned_then_the_sum_is_the_same(
    rows: dict[bytes, tuple[int, str | None]],
) -> None:
    whole = digest_rows(batch(rows))
    turned = dict(reversed(rows.items()))

    parts = [digest_rows(batch({key: row})) for key, row in turned.items()]

    assert sum(parts, RowsDigest()) == whole
    assert whole.rows == len(rows)


def test_given_values_that_run_together_when_digested_then_they_differ() -> None:
    digests = {
        digest_rows(batch(rows)).checksum
        for rows in (
            {b"a": (1, "2")},
            {b"a": (12, "")},
            {b"a": (12, None)},
            {b"a1": (2, None)},
            {b"a": (1, "2:1:2")},
        )
    }

    assert len(digests) == 5


def test_given_a_column_of_nulls_when_absent_then_the_digest_is_the_same() -> None:
    rows = batch({b"a": (1, None)})

    assert digest_rows(rows.drop_columns(["c2"])) == digest_rows(rows)


def test_given_stored_rows_when_version_or_tombstone_differ_then_so_does_their_digest() -> None:
    columns = {
        "_key": pa.array([b"a", b"a", b"a"]),
        "_version": pa.array([1, 2, 2]),
        "_op": pa.array([0, 0, 1], pa.uint8()),
    }
    rows = pa.RecordBatch.from_pydict(columns)

    assert len({digest_stored(rows.slice(at, 1)).checksum for at in range(3)}) == 3
    assert len({digest_rows(rows.slice(at, 1)).checksum for at in range(3)}) == 1
