"""The seven rules of a consistent representation: each is broken once, and is found alone."""

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.check.row_checks import RowRule
from dataplane.region.check.table_check import (
    entry_faults,
    family_faults,
    merged,
    name_faults,
    row_faults,
    value_faults,
)
from dataplane.region.format.columns import KEY, ColumnDef, row_schema
from dataplane.region.format.families import ROW
from dataplane.region.format.names import (
    Numbered,
    Opening,
    data_name,
    fence_name,
    is_ours,
    manifest_name,
    segment_name,
)
from dataplane.region.indexes.index_entries import IndexDef, entries_of
from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.checks import DataFault, DataFaults, DataRule
from metasrv_base.wire.node.jobs import RowCheck
from metasrv_base.wire.node.orders import DataFile

INDEX = 3
COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=True),
    ColumnDef(id=2, type="string", nullable=True),
)
BY_TEXT = IndexDef.of(INDEX, [2], COLUMNS, unique=False)
UNIQUE = IndexDef.of(INDEX, [2], COLUMNS, unique=True)
TEXT = [parse_type("string")]
Rows = dict[bytes, tuple[int | None, str | None]]
ROWS: Rows = {b"a": (1, "x"), b"b": (2, "y"), b"c": (3, None)}


def table_of(rows: Rows) -> pa.Table:
    numbers, texts = zip(*rows.values(), strict=True) if rows else ((), ())
    values = [list(rows), range(1, len(rows) + 1), numbers, texts]
    return pa.table(values, schema=row_schema(COLUMNS))


def entry(text: str | None, row: bytes) -> tuple[bytes, bytes]:
    return encode_entry(TEXT, (text,), row, unique=False), row


def stored(pairs: set[tuple[bytes, bytes]]) -> pa.Table:
    keys, rows = zip(*sorted(pairs), strict=True) if pairs else ((), ())
    columns = {KEY: pa.array(keys, pa.binary()), ROW: pa.array(rows, pa.binary())}
    return pa.table(columns)


def expected(rows: Rows, index: IndexDef = BY_TEXT) -> pa.Table:
    return entries_of(table_of(rows), index)


def pairs_of(rows: Rows) -> set[tuple[bytes, bytes]]:
    return {entry(text, key) for key, (_, text) in rows.items()}


def only(found: DataFaults) -> DataFault:
    (fault,) = found.found
    assert found.totals == {fault.rule: 1}
    return fault


def test_given_rows_and_their_entries_then_nothing_is_wrong() -> None:
    found = entry_faults(expected(ROWS), stored(pairs_of(ROWS)), BY_TEXT, complete=True)

    assert found.is_clean
    assert found == DataFaults()


def test_given_a_row_without_its_entry_when_the_index_is_public_then_it_is_missing() -> None:
    rest = pairs_of(ROWS) - {entry("x", b"a")}

    found = entry_faults(expected(ROWS), stored(rest), BY_TEXT, complete=True)
    on_its_way = entry_faults(expected(ROWS), stored(rest), BY_TEXT, complete=False)

    fault = only(found)
    assert (fault.rule, fault.element) == (DataRule.ENTRY_MISSING, INDEX)
    assert (fault.row_keys, fault.values) == (["61"], {"2": "x"})
    assert on_its_way.is_clean


@pytest.mark.parametrize(
    ("text", "row"), [("x", b"gone"), ("old", b"a"), (None, b"a")], ids=["no row", "old", "null"]
)
@pytest.mark.parametrize("complete", [True, False])
def test_given_an_entry_whose_row_is_not_so_then_it_is_wrong_in_every_state(
    text: str | None, row: bytes, complete: bool
) -> None:
    pairs = pairs_of(ROWS) | {entry(text, row)}

    fault = only(entry_faults(expected(ROWS), stored(pairs), BY_TEXT, complete=complete))

    assert (fault.rule, fault.row_keys) == (DataRule.ENTRY_WRONG, [row.hex()])
    assert fault.values == {"2": text}
    assert fault.entry_key == entry(text, row)[0].hex()


def test_given_an_entry_that_is_no_key_of_its_index_then_it_is_wrong_and_named_by_its_bytes() -> (
    None
):
    pairs = pairs_of(ROWS) | {(b"\xff\xff", b"a")}

    fault = only(entry_faults(expected(ROWS), stored(pairs), BY_TEXT, complete=True))

    assert (fault.rule, fault.values, fault.entry_key) == (DataRule.ENTRY_WRONG, {}, "ffff")


def test_given_two_rows_with_values_that_must_differ_then_the_constraint_is_broken() -> None:
    rows: Rows = {b"a": (1, "x"), b"b": (2, "x"), b"c": (3, None), b"d": (4, None)}
    made = expected(rows, UNIQUE)
    kept = made.filter(pc.not_equal(made.column(ROW), pa.scalar(b"b", pa.binary())))

    found = entry_faults(made, kept, UNIQUE, complete=True)

    assert found.totals == {DataRule.ENTRY_MISSING: 1, DataRule.CONSTRAINT_BROKEN: 1}
    (broken,) = [one for one in found.found if one.rule is DataRule.CONSTRAINT_BROKEN]
    assert (broken.row_keys, broken.values) == (["61", "62"], {"2": "x"})


def test_given_nulls_and_values_out_of_bounds_then_required_and_constraint_are_told_apart() -> None:
    required = RowRule.of(RowCheck(constraint=2, kind="not-null", columns=[2]), COLUMNS)
    constraint = RowRule.of(RowCheck(constraint=9, kind="not-null", columns=[1]), COLUMNS)
    rows: Rows = {b"a": (1, None), b"b": (None, "y"), b"c": (3, "z")}

    found = row_faults(table_of(rows), [required], [constraint])

    assert found.found == [
        DataFault(rule=DataRule.REQUIRED_MISSING, element=2, row_keys=["61"], values={"2": None}),
        DataFault(rule=DataRule.CONSTRAINT_BROKEN, element=9, row_keys=["62"], values={"1": None}),
    ]
    assert found.totals == {DataRule.REQUIRED_MISSING: 1, DataRule.CONSTRAINT_BROKEN: 1}


def test_given_values_of_a_column_that_nobody_owns_then_each_file_says_how_many() -> None:
    found = value_faults("data/1-1-1.parquet", {1: 10, 7: 4, 8: 0}, {1, 2})

    (fault,) = found.found
    assert (fault.rule, fault.element, fault.count) == (DataRule.VALUE_UNOWNED, 7, 4)
    assert found.totals == {DataRule.VALUE_UNOWNED: 4}


def test_given_files_of_an_index_that_is_gone_then_its_entries_are_nobodys() -> None:
    def file(family: int) -> DataFile:
        return DataFile(
            name=f"data/1-1-{family + 1}.parquet",
            family=family,
            rows=5,
            bytes=1,
            min_key="",
            max_key="",
            min_version=1,
            max_version=1,
            checksum="",
            footer_bytes=1,
            footer_checksum="",
            row_checksum="",
        )

    found = family_faults([file(0), file(INDEX), file(4)], {INDEX})

    (fault,) = found.found
    assert (fault.rule, fault.element) == (DataRule.ENTRY_UNOWNED, 4)
    assert (fault.file, fault.count) == ("data/1-1-5.parquet", 5)
    assert found.totals == {DataRule.ENTRY_UNOWNED: 5}


def test_given_a_name_that_no_region_gives_then_its_bytes_are_not_explained() -> None:
    at = Numbered(3, 2, 1)
    ours = [fence_name(Opening(3, 2)), manifest_name(at), segment_name(at), data_name(at)]
    ours += [manifest_name(at) + ".tmp", "attempts/one/part.parquet", "attempts/one/task.share"]

    found = name_faults(dict.fromkeys([*ours, "data/copy.parquet", "notes"], 12))

    assert all(is_ours(name) for name in ours)
    assert [fault.file for fault in found.found] == ["data/copy.parquet", "notes"]
    assert {fault.count for fault in found.found} == {12}
    assert found.totals == {DataRule.BYTES_UNEXPLAINED: 2}


def test_given_more_faults_than_are_listed_then_all_are_counted() -> None:
    parts = [value_faults(f"f{number}", {7: 1}, ()) for number in range(5)]

    found = merged(parts, limit=3)

    assert [fault.file for fault in found.found] == ["f0", "f1", "f2"]
    assert found.totals == {DataRule.VALUE_UNOWNED: 5}


TEXTS = st.one_of(st.none(), st.sampled_from(["", "x", "y"]))
KEYS = st.binary(min_size=1, max_size=2)


@given(
    rows=st.dictionaries(KEYS, st.tuples(st.none(), TEXTS), max_size=8),
    taken=st.sets(st.integers(0, 7)),
    planted=st.sets(st.tuples(TEXTS, KEYS), max_size=4),
)
def test_given_any_entries_then_the_join_lists_exactly_what_differs(
    rows: Rows, taken: set[int], planted: set[tuple[str | None, bytes]]
) -> None:
    right = pairs_of(rows)
    there = {one for at, one in enumerate(sorted(right)) if at not in taken}
    there |= {entry(text, row) for text, row in planted}

    found = entry_faults(expected(rows), stored(there), BY_TEXT, complete=True)

    listed: dict[DataRule, set[tuple[bytes, bytes]]] = defaultdict(set)
    for fault in found.found:
        (row,) = fault.row_keys
        listed[fault.rule].add((bytes.fromhex(fault.entry_key or ""), bytes.fromhex(row)))
    assert listed[DataRule.ENTRY_MISSING] == right - there
    assert listed[DataRule.ENTRY_WRONG] == there - right
