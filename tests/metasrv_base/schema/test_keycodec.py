"""Keys sort like values, decode to them, and never change: they are stored."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.errors import Corrupt, Refused
from metasrv_base.schema.keybatch import encode_batch
from metasrv_base.schema.keycodec import decode, encode
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import Value
from tests.metasrv_base.schema import golden
from tests.metasrv_base.schema.values import SAMPLES, rows, types

key_types = st.lists(types(), min_size=1, max_size=3)


def ordered(row: Sequence[Value]) -> tuple[object, ...]:
    """Returns the sort key of a row in Python: text by its UTF-8, everything else by itself."""
    return tuple(value.encode() if isinstance(value, str) else value for value in row)


def arrays_of(types: Sequence[ColumnType], rows: Sequence[tuple[Value, ...]]) -> list[pa.Array]:
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return [
        pa.array(column, pa.int64()).cast(type.arrow)
        if type.name == "timestamp"
        else pa.array(column, type.arrow)
        for type, column in zip(types, columns, strict=True)
    ]


def test_given_the_stored_format_when_written_then_it_is_the_golden_file() -> None:
    assert golden.keys() == golden.read("keys.txt")


@pytest.mark.parametrize(("text", "samples"), SAMPLES, ids=[text for text, _ in SAMPLES])
def test_given_rising_values_when_encoded_then_the_keys_rise(
    text: str, samples: tuple[Value, ...]
) -> None:
    type = parse_type(text)

    keys = [encode([type], [value]) for value in samples]

    assert keys == sorted(set(keys))


@given(st.data())
def test_given_a_row_when_encoded_then_it_decodes_to_itself(data: st.DataObject) -> None:
    types = data.draw(key_types)
    row = data.draw(rows(types))

    assert decode(types, encode(types, row)) == row


@given(st.data())
def test_given_two_rows_when_encoded_then_their_order_is_kept(data: st.DataObject) -> None:
    types = data.draw(key_types)
    left, right = data.draw(rows(types)), data.draw(rows(types))
    one, other = encode(types, left), encode(types, right)

    assert (one == other) == (left == right)
    assert (one < other) == (ordered(left) < ordered(right))
    assert one == other or not one.startswith(other)


@given(st.data())
def test_given_columns_when_encoded_at_once_then_the_bytes_are_the_same(
    data: st.DataObject,
) -> None:
    types = data.draw(key_types)
    some = data.draw(st.lists(rows(types), max_size=5))
    start = data.draw(st.integers(0, len(some)))
    arrays = [array.slice(start) for array in arrays_of(types, some)]

    keys = encode_batch(types, arrays)

    assert keys.type == pa.binary()
    assert keys.to_pylist() == [encode(types, row) for row in some[start:]]


def test_given_nan_when_encoded_then_it_is_refused() -> None:
    types = [parse_type("float64")]

    with pytest.raises(Refused, match="NaN"):
        encode(types, [float("nan")])
    with pytest.raises(Refused, match="NaN"):
        encode_batch(types, [pa.array([1.0, float("nan")])])


def test_given_both_zeros_when_encoded_then_they_are_one_key() -> None:
    types = [parse_type("float64")]

    assert encode(types, [-0.0]) == encode(types, [0.0])
    assert encode_batch(types, [pa.array([-0.0])])[0].as_py() == encode(types, [0.0])


@pytest.mark.parametrize(
    "column", [pa.array([1, None]), pa.array([1], pa.int32()), pa.array(["1"])], ids=str
)
def test_given_a_null_or_another_type_when_encoded_then_it_is_refused(column: pa.Array) -> None:
    with pytest.raises(Refused, match="invalid-request"):
        encode_batch([parse_type("int64")], [column])


@given(st.data())
def test_given_any_bytes_when_decoded_then_they_are_a_key_or_corrupt(data: st.DataObject) -> None:
    types = data.draw(key_types)
    key = data.draw(st.binary(max_size=24))

    try:
        row = decode(types, key)
    except Corrupt:
        return
    assert encode(types, row) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("boolean", "02"),
        ("int64", "80000000000000"),
        ("int8", "8000"),
        ("string", "61"),
        ("string", "610000"),
        ("string", "ff0001"),
        ("float64", "7fffffffffffffff"),
        ("float64", "fff8000000000000"),
        ("date", "ffffffff"),
    ],
)
def test_given_a_key_we_never_wrote_when_decoded_then_it_is_corrupt(text: str, key: str) -> None:
    with pytest.raises(Corrupt):
        decode([parse_type(text)], bytes.fromhex(key))
