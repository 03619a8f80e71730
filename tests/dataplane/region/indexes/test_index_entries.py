"""Rows as entries, for whole tables: the same keys as one by one, and keys that come twice."""

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.format.columns import KEY, VERSION, ColumnDef, row_schema
from dataplane.region.format.families import ROW
from dataplane.region.indexes.index_entries import (
    IndexDef,
    duplicates_of,
    entries_of,
    repeated,
    sorted_entries,
)
from metasrv_base.errors import Corrupt, Refused
from metasrv_base.schema.entrycodec import decode_values, encode_entry
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.offenders import Duplicate

COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=True),
    ColumnDef(id=2, type="string", nullable=True),
)
TYPES = [parse_type("string"), parse_type("int64")]
Row = tuple[bytes, int | None, str | None]
ROWS = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=3),
        st.one_of(st.none(), st.integers(-3, 3)),
        st.one_of(st.none(), st.sampled_from(["", "a", "a\x00", "b"])),
    ),
    max_size=12,
    unique_by=lambda row: row[0],
)


def table_of(rows: Sequence[Row]) -> pa.Table:
    keys, numbers, texts = zip(*rows, strict=True) if rows else ((), (), ())
    versions = range(1, len(rows) + 1)
    return pa.table([keys, versions, numbers, texts], schema=row_schema(COLUMNS))


def index_of(*, unique: bool) -> IndexDef:
    return IndexDef.of(3, [2, 1], COLUMNS, unique=unique)


@settings(max_examples=40)
@given(rows=ROWS, unique=st.booleans())
def test_given_rows_then_their_entries_are_those_of_each_row_in_order(
    rows: list[Row], unique: bool
) -> None:
    found = entries_of(table_of(rows), index_of(unique=unique)).to_pydict()

    expected = [
        (encode_entry(TYPES, (text, number), key, unique=unique), -version, key)
        for version, (key, number, text) in enumerate(rows, 1)
    ]
    triples = zip(found[KEY], [-one for one in found[VERSION]], found[ROW], strict=True)
    assert list(triples) == sorted(expected)
    assert set(found["_op"]) <= {0}


@settings(max_examples=40)
@given(rows=ROWS)
def test_given_equal_values_then_duplicates_are_counted_and_nulls_are_never_equal(
    rows: list[Row],
) -> None:
    by_values: dict[tuple[str, int], list[str]] = {}
    for key, number, text in sorted(rows):
        if number is not None and text is not None:
            by_values.setdefault((text, number), []).append(key.hex())
    expected = [
        Duplicate(values=list(values), row_keys=keys[:8])
        for values, keys in sorted(by_values.items())
        if len(keys) > 1
    ]

    entries = entries_of(table_of(rows), index_of(unique=True))

    assert duplicates_of(entries, index_of(unique=True), 100) == (tuple(expected), len(expected))
    assert duplicates_of(entries, index_of(unique=True), 1) == (tuple(expected[:1]), len(expected))


@settings(max_examples=40)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 12), max_size=3))
def test_given_entries_in_any_tables_then_those_that_share_a_key_are_all_told(
    rows: list[Row], cuts: list[int]
) -> None:
    entries = entries_of(table_of(rows), index_of(unique=True))
    keys = entries.column(KEY).to_pylist()
    ends = sorted({min(cut, len(keys)) for cut in cuts} | {len(keys)})
    starts = [0, *ends]
    parts = [entries.slice(a, b - a) for a, b in zip(starts, ends, strict=False)]

    told = {row for part in repeated(parts) for row in part.column(ROW).to_pylist()}

    pairs = zip(keys, entries.column(ROW).to_pylist(), strict=True)
    assert told == {row for key, row in pairs if keys.count(key) > 1}


def test_given_more_rows_than_are_named_when_they_are_equal_then_the_first_are() -> None:
    rows: list[Row] = [(b"%02d" % number, 1, "x") for number in range(40)]
    random.Random(1).shuffle(rows)

    (found,), total = duplicates_of(
        entries_of(table_of(rows), index_of(unique=True)), index_of(unique=True), 10
    )

    assert total == 1
    assert len(found.row_keys) == 8
    assert found.values == ["x", 1]


def test_given_entries_of_one_key_when_sorted_then_the_newest_is_first() -> None:
    entries = entries_of(table_of([(b"a", 1, "x"), (b"b", 1, "x")]), index_of(unique=True))

    backwards = sorted_entries(entries.take([1, 0]))

    assert backwards.column(VERSION).to_pylist() == [2, 1]


def test_given_columns_that_are_not_there_when_an_index_is_asked_for_then_refused() -> None:
    for ids in ([2, 9], []):
        with pytest.raises(Refused):
            IndexDef.of(3, ids, COLUMNS, unique=False)


@settings(max_examples=40)
@given(rows=ROWS, unique=st.booleans())
def test_given_entries_then_their_values_are_read_back(rows: list[Row], unique: bool) -> None:
    for key, number, text in rows:
        entry = encode_entry(TYPES, (text, number), key, unique=unique)

        assert decode_values(TYPES, entry) == (text, number)


@pytest.mark.parametrize("key", [b"", b"\x01", b"\x02a\x00\x01", b"\x01a\x00\x01\x01\x80"])
def test_given_bytes_that_are_no_entry_when_read_then_corrupt(key: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_values(TYPES, key)
