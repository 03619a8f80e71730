"""A memtable against a list of all rows, whatever order the keys of its batches come in."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.format.columns import DELETE, PUT, ColumnDef, file_schema
from dataplane.region.format.room import LookupRoom
from dataplane.region.format.row_keys import RowKeys
from dataplane.region.memory import memtable as module
from dataplane.region.memory.memtable import Memtable

COLUMNS = (ColumnDef(id=1, type="int64", nullable=True),)
ALL = [b"%03d" % number for number in range(200)]
Batch = list[tuple[bytes, bool]]
"""Keys, and whether the row is deleted."""


def added(memtable: Memtable, batch: Batch, version: int, *, has_objects: bool = False) -> None:
    keys = [key for key, _ in batch]
    arrays = [
        pa.array(keys, pa.binary()),
        pa.array([version] * len(batch), pa.int64()),
        pa.array([DELETE if is_deleted else PUT for _, is_deleted in batch], pa.uint8()),
        pa.array([version] * len(batch), pa.int64()),
    ]
    rows = pa.RecordBatch.from_arrays(arrays, schema=file_schema(COLUMNS))
    memtable.add(rows, RowKeys.of(keys) if has_objects else RowKeys(rows.column("_key")), 0)


stretches = st.integers(0, 150).flatmap(
    lambda start: st.integers(1, 50).map(lambda count: ALL[start : start + count])
)
key_lists = st.one_of(
    stretches,
    st.lists(st.sampled_from(ALL), unique=True, min_size=1, max_size=30),
    st.lists(stretches, min_size=2, max_size=3).map(
        lambda parts: list(dict.fromkeys(key for part in parts for key in part))
    ),
)
batches = key_lists.flatmap(
    lambda keys: st.lists(st.booleans(), min_size=len(keys), max_size=len(keys)).map(
        lambda deleted: list(zip(keys, deleted, strict=True))
    )
)


@pytest.fixture(autouse=True)
def _short_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPAN_ROWS_MIN", 4)


@given(st.lists(batches, min_size=1, max_size=8), st.booleans())
@pytest.mark.slow
def test_given_batches_in_any_order_when_read_then_each_moment_has_its_newest_rows(
    all_batches: list[Batch], has_objects: bool
) -> None:
    memtable = Memtable(COLUMNS)
    moments: list[tuple[int, dict[bytes, tuple[int, bool]]]] = [(0, {})]
    every: list[tuple[bytes, int]] = []
    for version, batch in enumerate(all_batches, start=1):
        newest = moments[-1][1] | {key: (version, is_deleted) for key, is_deleted in batch}
        asked = RowKeys.of([key for key, _ in batch])
        assert memtable.holds_any(asked) == any(key in moments[-1][1] for key, _ in batch)
        added(memtable, batch, version, has_objects=has_objects)
        moments.append((memtable.rows, newest))
        every += [(key, version) for key, _ in batch]

    for rows, newest in moments:
        for keys in (ALL, ALL[::-7], ALL[5:6]):
            found = memtable.find(RowKeys.of(keys), rows)
            told = {
                key: (one.version, one.is_tombstone)
                for key, one in zip(keys, found, strict=True)
                if one is not None
            }
            assert told == {key: newest[key] for key in keys if key in newest}
    positions = [one for one in memtable.find(RowKeys.of(ALL), memtable.rows) if one is not None]
    values = memtable.rows_at(positions, LookupRoom()).column("c1").to_pylist()
    assert sorted(values) == sorted(one.version for one in positions)
    for every_version in (False, True):
        parts = pa.concat_tables(memtable.parts_by_key(every_version=every_version))
        columns = (parts.column(name).to_pylist() for name in ("_key", "_version"))
        pairs = list(zip(*columns, strict=True))
        wanted = every if every_version else [(key, one[0]) for key, one in newest.items()]
        assert pairs == sorted(wanted, key=lambda pair: (pair[0], -pair[1]))


def test_given_batches_of_rising_keys_when_they_come_in_any_order_then_no_row_is_indexed() -> None:
    """An index takes 160 bytes a row."""
    memtable, rows = Memtable(COLUMNS), 0
    for version, start in enumerate((6_000, 0, 3_000, 9_000), start=1):
        keys = [b"%08d" % number for number in range(start, start + 3_000)]
        added(memtable, [(key, False) for key in keys], version)
        rows += 3_000

    in_columns = sum(part.nbytes for part in memtable.parts_by_key(every_version=True))
    assert memtable.bytes <= in_columns + 4 * 4_000
    parts = [part.num_rows for part in memtable.parts_by_key(every_version=False)]
    assert sum(parts) == rows
