"""Does what a region stores fit the table's schema? Rows and entries as whole tables. Pure.

Each function looks at one of the rules of metasrv_base/wire/node/checks.py, or at two that are two
halves of one full outer join; `merged` adds up what they find in the parts of a region.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa
from pydantic import JsonValue

from dataplane.region.check.row_checks import RowRule, violations
from dataplane.region.format.columns import KEY
from dataplane.region.format.families import ROW, ROWS
from dataplane.region.format.names import is_ours
from dataplane.region.indexes.index_entries import IndexDef, duplicates_of
from metasrv_base.errors import Corrupt
from metasrv_base.schema.entrycodec import decode_values
from metasrv_base.schema.values import to_json
from metasrv_base.wire.node.checks import FAULTS_MAX, DataFault, DataFaults, DataRule
from metasrv_base.wire.node.offenders import LISTED_CHARS_MAX, ViolatingRow, first_within, shown
from metasrv_base.wire.node.orders import DataFile


def merged(parts: Iterable[DataFaults], limit: int = FAULTS_MAX) -> DataFaults:
    """Joins results in the order of the parts: of each rule the first *limit* faults, and in all as
    many as an answer may list."""
    listed: Counter[DataRule] = Counter()
    totals: Counter[DataRule] = Counter()
    faults = []
    for part in parts:
        totals.update(part.totals)
        for fault in part.found:
            if listed[fault.rule] < limit:
                listed[fault.rule] += 1
                faults.append(fault)
    return DataFaults(found=first_within(faults, LISTED_CHARS_MAX), totals=dict(totals))


def entry_faults(
    expected: pa.Table, stored: pa.Table, index: IndexDef, *, complete: bool
) -> DataFaults:
    """The full outer join of the entries that rows must have with those that are stored, both by
    key: rows without an entry, and entries without a row of these values."""
    parts = [_entries(DataRule.ENTRY_WRONG, _without(stored, expected), index)]
    if complete:
        parts.append(_entries(DataRule.ENTRY_MISSING, _without(expected, stored), index))
    if complete and index.unique:
        parts.append(_shared_values(expected, index))
    return merged(parts)


def row_faults(
    rows: pa.Table, required: Sequence[RowRule], constraints: Sequence[RowRule]
) -> DataFaults:
    """Returns the rows that break a rule. *required* has one rule for each required column, which
    bears the column's id for its own."""
    missing, missing_total = violations(rows, required, FAULTS_MAX)
    broken, broken_total = violations(rows, constraints, FAULTS_MAX)
    return merged(
        (
            _rows(DataRule.REQUIRED_MISSING, missing, missing_total),
            _rows(DataRule.CONSTRAINT_BROKEN, broken, broken_total),
        )
    )


def value_faults(file: str, values: Mapping[int, int], owned: Collection[int]) -> DataFaults:
    """Returns values of columns that the table does not have. *values* is, by column id, how many a
    file of rows has; *owned* are columns of the table, and those that it had: their values go when
    the file is merged."""
    strange = {id: count for id, count in values.items() if count and id not in owned}
    faults = [
        DataFault(rule=DataRule.VALUE_UNOWNED, element=id, file=file, count=count)
        for id, count in sorted(strange.items())
    ]
    return _faults(DataRule.VALUE_UNOWNED, faults, sum(strange.values()))


def family_faults(files: Iterable[DataFile], indexes: Collection[int]) -> DataFaults:
    """Returns files of indexes that the table does not have. *files* are all that a region
    lists."""
    strange = [file for file in files if file.family != ROWS and file.family not in indexes]
    faults = [
        DataFault(rule=DataRule.ENTRY_UNOWNED, element=file.family, file=file.name, count=file.rows)
        for file in strange
    ]
    return _faults(DataRule.ENTRY_UNOWNED, faults, sum(file.rows for file in strange))


def name_faults(sizes: Mapping[str, int]) -> DataFaults:
    """Returns files with names that no region writes. *sizes* are of all files below a region's
    root, by name relative to it. A file with a name that a region writes is a part of it, or is
    removed by its next sweep; any other would stay for ever."""
    faults = [
        DataFault(rule=DataRule.BYTES_UNEXPLAINED, file=name, count=max(size, 1))
        for name, size in sorted(sizes.items())
        if not is_ours(name)
    ]
    return _faults(DataRule.BYTES_UNEXPLAINED, faults, len(faults))


def _faults(rule: DataRule, faults: Sequence[DataFault], total: int) -> DataFaults:
    listed = first_within(faults[:FAULTS_MAX], LISTED_CHARS_MAX)
    return DataFaults(found=listed, totals={rule: total} if total else {})


def _rows(rule: DataRule, violating: Sequence[ViolatingRow], total: int) -> DataFaults:
    named = [
        DataFault(rule=rule, element=row.constraint, row_keys=[row.row_key], values=row.values)
        for row in violating
    ]
    return _faults(rule, named, total)


def _without(left: pa.Table, right: pa.Table) -> pa.Table:
    """Entries of *left* that *right* does not have, by key."""
    both = [KEY, ROW]
    missing = left.select(both).join(right.select(both), keys=both, join_type="left anti")
    return missing.sort_by([(KEY, "ascending"), (ROW, "ascending")])


def _entries(rule: DataRule, entries: pa.Table, index: IndexDef) -> DataFaults:
    first = entries.slice(0, FAULTS_MAX)
    pairs = zip(first.column(KEY).to_pylist(), first.column(ROW).to_pylist(), strict=True)
    faults = [
        DataFault(
            rule=rule,
            element=index.family,
            row_keys=[row.hex()],
            values=_values(index, key),
            entry_key=key.hex(),
        )
        for key, row in pairs
    ]
    return _faults(rule, faults, entries.num_rows)


def _values(index: IndexDef, key: bytes) -> dict[str, JsonValue]:
    """None at all of a key that cannot be decoded."""
    try:
        values = decode_values(index.types, key)
    except Corrupt:
        return {}
    named = zip(index.columns, index.types, values, strict=True)
    return {str(c.id): None if value is None else shown(to_json(t, value)) for c, t, value in named}


def _shared_values(expected: pa.Table, index: IndexDef) -> DataFaults:
    duplicates, total = duplicates_of(expected, index, FAULTS_MAX)
    ids = [str(column.id) for column in index.columns]
    faults = [
        DataFault(
            rule=DataRule.CONSTRAINT_BROKEN,
            element=index.family,
            row_keys=duplicate.row_keys,
            values=dict(zip(ids, duplicate.values, strict=True)),
        )
        for duplicate in duplicates
    ]
    return _faults(DataRule.CONSTRAINT_BROKEN, faults, total)
