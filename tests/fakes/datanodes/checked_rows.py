"""Rows and entries of the fake plane held against a schema, by the product's code."""

from collections.abc import Mapping

import pyarrow as pa

from dataplane.region.check.row_checks import RowRule
from dataplane.region.check.table_check import entry_faults, family_faults, merged, row_faults
from dataplane.region.format.columns import KEY, columns_told
from dataplane.region.format.families import ROW, ROWS
from dataplane.region.indexes.index_entries import IndexDef, entries_of
from metasrv_base.wire.node.checks import DataFault, DataFaults
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.jobs import CheckJob, RowCheck
from tests.fakes.datanodes.disk import Rows
from tests.fakes.datanodes.index_rows import as_table, primary_key


def of_rows(snapshot: Snapshot) -> Snapshot:
    files = [one for one in snapshot.files if one.file.family == ROWS]
    return snapshot.model_copy(update={"files": files})


def faults(job: CheckJob, rows: Rows, entries: Mapping[int, Rows]) -> DataFaults:
    """*entries*: by index, as `index_rows.backfilled`."""
    columns = columns_told(job.snapshot.columns)
    table = as_table(rows, columns)
    required = [RowCheck(constraint=id, kind="not-null", columns=[id]) for id in job.required]
    parts = [
        family_faults([one.file for one in job.snapshot.files], {one.id for one in job.indexes}),
        row_faults(
            table,
            [RowRule.of(one, columns) for one in required],
            [RowRule.of(one, columns) for one in job.checks],
        ),
    ]
    for one in job.indexes:
        index = IndexDef.of(one.id, one.columns, columns, unique=one.unique)
        expected, stored = entries_of(table, index), _stored(entries.get(one.id, frozenset()))
        parts.append(entry_faults(expected, stored, index, complete=one.complete))
    found = merged(parts)
    return found.model_copy(update={"found": [_with_keys(one) for one in found.found]})


def _stored(entries: Rows) -> pa.Table:
    pairs = [entry.split(" ") for entry in sorted(entries)]
    keys = pa.array([bytes.fromhex(key) for key, _ in pairs], pa.binary())
    rows = pa.array([row.encode() for _, row in pairs], pa.binary())
    return pa.table({KEY: keys, ROW: rows})


def _with_keys(fault: DataFault) -> DataFault:
    keys = [primary_key(bytes.fromhex(key).decode()) for key in fault.row_keys]
    return fault.model_copy(update={"row_keys": keys})
