"""Entries of an index sort like the values, nulls first, and never change: they are stored."""

import math
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.schema.entrycodec import encode_entries, encode_entry, encode_values
from metasrv_base.schema.types import FLOATS, ColumnType, parse_type
from metasrv_base.schema.values import Value
from tests.metasrv_base.schema import golden
from tests.metasrv_base.schema.values import types, values

Indexed = tuple[Value | None, ...]
indexed_types = st.lists(types(), min_size=1, max_size=3)


def indexed(types: Sequence[ColumnType]) -> st.SearchStrategy[Indexed]:
    """Values of indexed columns: null and NaN are among them."""
    return st.tuples(
        *(
            st.one_of(
                st.none(),
                values(type),
                *([st.just(math.nan)] if type.name in FLOATS else []),
            )
            for type in types
        )
    )


def ordered(row: Indexed) -> tuple[object, ...]:
    """Returns the sort key of a row in Python: null, the numbers, NaN."""
    return tuple(
        (0, 0, 0)
        if value is None
        else (1, 1, 0)
        if isinstance(value, float) and math.isnan(value)
        else (1, 0, value.encode() if isinstance(value, str) else value)
        for value in row
    )


def arrays_of(types: Sequence[ColumnType], rows: Sequence[Indexed]) -> list[pa.Array]:
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return [
        pa.array(column, pa.int64()).cast(type.arrow)
        if type.name == "timestamp"
        else pa.array(column, type.arrow)
        for type, column in zip(types, columns, strict=True)
    ]


def test_given_the_stored_format_when_written_then_it_is_the_golden_file() -> None:
    assert golden.entries() == golden.read("entries.txt")


@given(st.data())
def test_given_two_rows_when_encoded_then_their_order_is_kept(data: st.DataObject) -> None:
    types = data.draw(indexed_types)
    left, right = data.draw(indexed(types)), data.draw(indexed(types))
    one, other = encode_values(types, left), encode_values(types, right)

    assert (one == other) == (ordered(left) == ordered(right))
    assert (one < other) == (ordered(left) < ordered(right))
    assert one == other or not one.startswith(other)


@given(st.data(), st.booleans())
def test_given_columns_when_encoded_at_once_then_the_bytes_are_the_same(
    data: st.DataObject, unique: bool
) -> None:
    types = data.draw(indexed_types)
    some = data.draw(st.lists(indexed(types), max_size=5))
    keys = data.draw(st.lists(st.binary(), min_size=len(some), max_size=len(some)))
    start = data.draw(st.integers(0, len(some)))
    arrays = [array.slice(start) for array in arrays_of(types, some)]

    found = encode_entries(types, arrays, pa.array(keys[start:], pa.binary()), unique=unique)

    assert found.type == pa.binary()
    assert found.to_pylist() == [
        encode_entry(types, row, key, unique=unique)
        for row, key in zip(some[start:], keys[start:], strict=True)
    ]


@given(st.data())
def test_given_entries_of_one_value_when_encoded_then_all_begin_with_it(
    data: st.DataObject,
) -> None:
    types = data.draw(indexed_types)
    row = data.draw(indexed(types))
    first = data.draw(st.integers(1, len(types)))

    entry = encode_entry(types, row, b"k", unique=data.draw(st.booleans()))

    assert entry.startswith(encode_values(types[:first], row[:first]))


@pytest.mark.parametrize(
    ("row", "are_one"),
    [((7, "a"), True), ((7, None), False), ((None, None), False)],
    ids=str,
)
def test_given_a_unique_index_when_two_rows_are_equal_then_only_nulls_keep_them_apart(
    row: Indexed, are_one: bool
) -> None:
    types = [parse_type("int64"), parse_type("string")]

    entries = {encode_entry(types, row, key, unique=True) for key in (b"1", b"2")}

    assert (len(entries) == 1) == are_one
