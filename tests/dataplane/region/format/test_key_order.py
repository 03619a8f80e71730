"""Keys in order, as Python sorts bytes."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.format.key_order import in_key_order, order_of

ALPHABETS = st.sampled_from(["\0", "\0a", "ab", "".join(map(chr, range(256)))])


@st.composite
def keys(draw: st.DrawFn) -> list[bytes]:
    """Keys that share beginnings, differ in a late byte, or are each other's beginnings."""
    text = st.text(draw(ALPHABETS), max_size=draw(st.sampled_from([1, 3, 9, 30])))
    prefix = draw(st.binary(max_size=20))
    return [prefix + one.encode("latin-1") for one in draw(st.lists(text, max_size=40))]


@given(keys())
def test_given_keys_when_ordered_then_each_comes_once_as_bytes_are_compared(
    found: list[bytes],
) -> None:
    inside = pa.array([b"before", *found, b"behind"], pa.binary()).slice(1, len(found))

    order = order_of(inside).tolist()

    assert [found[place] for place in order] == sorted(found)
    assert sorted(order) == list(range(len(found)))


@given(keys(), st.integers(0, 40))
def test_given_rows_in_parts_when_put_in_order_then_they_keep_their_values(
    found: list[bytes], cut: int
) -> None:
    rows = pa.table({"_key": pa.array(found, pa.binary()), "value": pa.array(found, pa.binary())})

    ordered = in_key_order(pa.concat_tables([rows.slice(0, cut), rows.slice(cut)]), "_key")

    assert ordered.column("_key").to_pylist() == sorted(found)
    assert ordered.column("value").to_pylist() == sorted(found)
