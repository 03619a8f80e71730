"""Checks the form of a batch before a region orders it; a refused batch has changed nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.engine.shape import BatchShape, FamilyShape
from dataplane.region.format.columns import DELETE, EXPECT, KEY, OP, PUT, ColumnDef
from dataplane.region.format.conforming import as_written_before
from dataplane.region.format.families import FAMILY, ROWS, FamilyRows, families_of
from dataplane.region.format.row_keys import RowKeys
from metasrv_base.errors import Refused
from metasrv_base.rows.limited import check_entry_keys, check_keys, check_rows
from metasrv_base.wire.limits import RECORD_BYTES_MAX
from metasrv_base.wire.node.batches import ABSENT


@dataclass(frozen=True, slots=True)
class BatchIntake:
    """A batch in the region's own form."""

    parts: Sequence[FamilyRows]
    """Rows in order of family, as `log_schema`."""
    expected: Mapping[int, "Expectations"]
    """Expectations by family; none of a family whose rows have no condition."""
    rows: int
    """Entries too."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """Keys that must exist, or must not, for a batch to be applied."""

    keys: RowKeys
    """The keys about which the batch has a condition; one at least."""
    versions: Mapping[bytes, int] | None = None
    """The row version of each that must be current, ABSENT: no row. None: none has a row."""

    def of(self, key: bytes) -> int:
        return ABSENT if self.versions is None else self.versions[key]


def take_in(batch: pa.RecordBatch, shape: BatchShape) -> BatchIntake:
    """Raises Refused: `invalid-request` with what is wrong, `limit-exceeded`, or `body-too-large`
    for a batch that is too large with all its columns, before they are made. Whether the region has
    the families is not asked here."""
    if batch.num_rows == 0 or not shape.is_accepted(batch.schema):
        _check_shape(batch, shape.types)
        shape.accept(batch.schema)
    parts, expected, logged_bytes = [], {}, 0
    for family, some in _by_family(batch):
        family_shape = shape.of(family)
        logged_bytes += family_shape.logged_bytes(some)
        if logged_bytes > RECORD_BYTES_MAX:
            raise too_large(logged_bytes)
        part = _part(family, some, family_shape)
        if not part.keys.are_distinct():
            raise Refused(
                "invalid-request", family=family, reason="a key stands twice in one batch"
            )
        parts.append(part)
        if (conditions := _expectations(some, part.keys)) is not None:
            expected[family] = conditions
    return BatchIntake(parts, expected, batch.num_rows)


def too_large(logged_bytes: int) -> Refused:
    """The error of a batch that no record can hold, with all columns of its table."""
    limit = {"limit": "record_bytes", "limit_bytes": RECORD_BYTES_MAX}
    return Refused("body-too-large", **limit, found_bytes=logged_bytes)


def _check_shape(batch: pa.RecordBatch, types: Mapping[str, pa.DataType]) -> None:
    names = batch.schema.names
    if batch.num_rows == 0 or len(set(names)) < len(names) or not {KEY, OP} <= set(names):
        raise Refused("invalid-request", reason="a batch has rows, and _key and _op once each")
    for field in batch.schema:
        if field.name not in types:
            raise Refused("invalid-request", column=field.name, reason="unknown column")
        if field.type != types[field.name]:
            expected, actual = str(types[field.name]), str(field.type)
            raise Refused("invalid-request", column=field.name, expected=expected, found=actual)


def _by_family(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Divides rows by family, in order of family; the rows of each keep their order."""
    if FAMILY not in batch.schema.names:
        yield ROWS, batch
        return
    families = families_of(batch)
    distinct: list[int] = sorted(pc.unique(families).to_pylist())
    if len(distinct) == 1:
        yield distinct[0], batch
        return
    for family in distinct:
        yield family, batch.filter(pc.equal(families, pa.scalar(family, pa.int32())))


def _part(family: int, batch: pa.RecordBatch, shape: FamilyShape) -> FamilyRows:
    present = batch.schema.names
    for name in sorted(shape.not_here.intersection(present)):
        if batch.column(name).null_count < batch.num_rows:
            raise Refused("invalid-request", column=name, family=family, reason="not null")
    columns = dict(zip(present, batch.columns, strict=True))
    arrays = [
        columns[name] if name in columns else as_written_before(shape.schema.field(name), batch)
        for name in shape.names
    ]
    rows = pa.RecordBatch.from_arrays(arrays, schema=shape.schema)
    # What does not convert is for the change of type to find, and no fault of who knows none.
    _check_values(
        rows,
        [
            column
            for column in shape.not_null
            if column.name_in(columns.keys()) in (column.name, None)
        ],
    )
    _check_sizes(family, rows)
    return FamilyRows(family, rows, RowKeys(rows.column(KEY)))


def _check_values(rows: pa.RecordBatch, not_null: Sequence[ColumnDef]) -> None:
    ops = rows.column(OP)
    if rows.column(KEY).null_count or ops.null_count:
        raise Refused("invalid-request", reason="_key and _op are never null")
    if pc.max(ops).as_py() > DELETE:
        raise Refused("invalid-request", reason="_op is 0 (put) or 1 (delete)")
    for column in not_null:
        values = rows.column(column.name)
        if not values.null_count:
            continue
        puts = pc.equal(ops, pa.scalar(PUT, pa.uint8()))
        if pc.any(pc.and_(puts, values.is_null())).as_py():
            raise Refused("invalid-request", column=column.name, reason="null in a put")


def _check_sizes(family: int, rows: pa.RecordBatch) -> None:
    if family == ROWS:
        check_keys(rows.column(KEY))
        check_rows(rows)
    else:
        check_entry_keys(rows.column(KEY), family)


def _expectations(batch: pa.RecordBatch, keys: RowKeys) -> Expectations | None:
    """Returns the condition of a batch; None if it has none. *keys* are all those of the batch, in
    order."""
    if EXPECT not in batch.schema.names:
        return None
    expected = batch.column(EXPECT)
    if expected.null_count == 0 and pc.max(expected).as_py() == pc.min(expected).as_py() == ABSENT:
        return Expectations(keys)
    pairs = zip(keys.values, expected.to_pylist(), strict=True)
    versions = {key: version for key, version in pairs if version is not None}
    return Expectations(RowKeys.of(list(versions)), versions) if versions else None
