"""Rows of the fake plane as tables: what jobs compute of them is computed by the product's code.

A row is `key` or `key=value`; every column has that value, or the key. `key=` is null.
"""

from collections.abc import Sequence

import pyarrow as pa

from dataplane.region.check.row_checks import RowRule, violations
from dataplane.region.format.columns import KEY, VERSION, ColumnDef, columns_told, row_schema
from dataplane.region.format.families import ROW
from dataplane.region.indexes.index_entries import IndexDef, duplicates_of, entries_of
from metasrv_base.schema.keycodec import encode
from metasrv_base.schema.types import INTEGER_BITS, parse_type
from metasrv_base.wire.node.jobs import BackfillJob, ValidateJob
from metasrv_base.wire.node.offenders import OFFENDERS_MAX, Duplicate, Offenders, ViolatingRow
from metasrv_base.wire.node.orders import IngestFiles
from tests.fakes.datanodes.disk import Rows

INT64 = parse_type("int64")


def backfilled(job: BackfillJob, rows: Rows) -> tuple[Rows, tuple[Duplicate, ...], int]:
    """Entries as `{key, hexadecimal} {row}`; duplicates, and how many there are."""
    columns = columns_told(job.snapshot.columns)
    asked = job.index
    index = IndexDef.of(asked.id, asked.columns, columns, unique=asked.unique)
    entries = entries_of(as_table(rows, columns), index)
    found, total = duplicates_of(entries, index, OFFENDERS_MAX) if asked.unique else ((), 0)
    pairs = zip(entries.column(KEY).to_pylist(), entries.column(ROW).to_pylist(), strict=True)
    return frozenset(f"{key.hex()} {row.decode()}" for key, row in pairs), found, total


def broken(job: ValidateJob, rows: Rows) -> tuple[tuple[ViolatingRow, ...], int]:
    columns = columns_told(job.snapshot.columns)
    row_rules = [RowRule.of(check, columns) for check in job.checks]
    found, total = violations(as_table(rows, columns), row_rules, OFFENDERS_MAX)
    keys = [primary_key(bytes.fromhex(one.row_key).decode()) for one in found]
    named = zip(found, keys, strict=True)
    return tuple(one.model_copy(update={"row_key": key}) for one, key in named), total


def offenders(order: IngestFiles, entries: Rows, rows: Rows) -> Offenders | None:
    """Entries of living rows that have one key, which stands for the value of every column of the
    index; None: there are none."""
    living = {key_of(row).decode() for row in rows}
    by_key: dict[str, list[str]] = {}
    for entry in sorted(entries):
        key, row = entry.split(" ")
        if row in living:
            by_key.setdefault(key, []).append(row)
    found = [
        Duplicate(
            values=[key] * len(order.unique_columns), row_keys=[primary_key(row) for row in some]
        )
        for key, some in by_key.items()
        if len(some) > 1
    ]
    return Offenders(index=order.index, duplicates=found, total=len(found)) if found else None


def primary_key(row: str) -> str:
    """Returns the primary key that `as_table` gives a row whose table is keyed by an int64."""
    return encode((INT64,), (int(_value(row, INT64.name) or 0),)).hex()


def as_table(rows: Rows, columns: Sequence[ColumnDef]) -> pa.Table:
    """By key, each of a version of its own; as `columns.row_schema`."""
    ordered = sorted(rows)
    arrays = {
        KEY: pa.array([key_of(row) for row in ordered], pa.binary()),
        VERSION: pa.array(range(1, len(ordered) + 1), pa.int64()),
    }
    for column in columns:
        type = parse_type(column.type)
        values = [_value(row, type.name) for row in ordered]
        arrays[column.name] = pa.array(values).cast(type.arrow)
    return pa.table(arrays, schema=row_schema(columns))


def key_of(row: str) -> bytes:
    return row.partition("=")[0].encode()


def _value(row: str, type: str) -> str | int | None:
    key, given, text = row.partition("=")
    if given and not text:
        return None
    text = text or key
    if type not in INTEGER_BITS:
        return text
    if text.lstrip("-").isdecimal():
        return int(text)
    return text.encode()[-1]  # some number: its key is all that a test says of the row
