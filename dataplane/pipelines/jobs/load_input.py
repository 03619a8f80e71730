"""Files of users, read: what is in them, and their rows as the table stores them.

Nothing here knows Spark. What is wrong with a file is refused, naming it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataplane.pipelines.jobs.load_plan import SAMPLE_ROWS, InputFile, Piece, Sample
from dataplane.region.check.row_checks import RowRule
from dataplane.region.format.columns import KEY, ColumnDef, columns_told
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.rows.convert import array_of, cast_column
from metasrv_base.rows.layout import LayoutColumn
from metasrv_base.rows.limited import check_keys, check_rows
from metasrv_base.schema.keybatch import encode_batch
from metasrv_base.schema.partition import Router, router
from metasrv_base.schema.types import FLOATS, INTEGER_BITS, ColumnType, parse_type
from metasrv_base.schema.values import from_json
from metasrv_base.wire.node.jobs import LoadColumn, LoadJob, RowCheck

BATCH_ROWS = 64 << 10
REGION = "_region"
NO_NULL = 0
"""The constraint that a column without nulls is."""

_SOURCES: Mapping[str, Callable[[pa.DataType], bool]] = {
    "boolean": pa.types.is_boolean,
    **dict.fromkeys(INTEGER_BITS, pa.types.is_integer),
    **dict.fromkeys(FLOATS, lambda type: pa.types.is_floating(type) or pa.types.is_integer(type)),
    "decimal": lambda type: pa.types.is_decimal(type) or pa.types.is_integer(type),
    "string": lambda type: (
        pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)
    ),
    "binary": lambda type: (
        pa.types.is_binary(type)
        or pa.types.is_large_binary(type)
        or pa.types.is_fixed_size_binary(type)
    ),
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
}
"""The Arrow types whose values a column can store without loss, by the column's type; text is not
parsed."""


def files_at(folders: Sequence[str], path: str) -> list[str]:
    """The file, or all Parquet files below the folder, as Spark would find them; of no other place
    than *folders* it is said whether there is one."""
    _refuse_outside(folders, path, path)
    with _refused_if_unreadable(path):
        if not os.path.isdir(path):
            os.stat(path)
            return [path]
        files = [
            str(file)
            for file in sorted(Path(path).rglob("*.parquet"))
            if not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
        ]
    if not files:
        raise _refused(path, "no file", "files whose names end in .parquet")
    for file in files:
        _refuse_outside(folders, path, file)
    return files


def found_at(
    columns: Sequence[LoadColumn], folders: Sequence[str], path: str
) -> InputFile | list[str]:
    """The file as `look_at` describes it, or the files that `files_at` lists below a folder."""
    files = files_at(folders, path)
    return look_at(columns, path) if files == [path] else files


def _refuse_outside(folders: Sequence[str], path: str, file: str) -> None:
    real = Path(os.path.realpath(file))
    if not any(real.is_relative_to(os.path.realpath(folder)) for folder in folders):
        expected = "a path in one of the server's import_folders"
        raise _refused(path, "a path outside them", expected)


def look_at(columns: Sequence[LoadColumn], path: str) -> InputFile:
    """Raises Refused for a file that the table cannot take, whatever its rows say."""
    with _refused_if_unreadable(path):
        stat = os.stat(path)
        with pq.ParquetFile(path, memory_map=False) as file:
            metadata, schema = file.metadata, file.schema_arrow
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    _check_schema(path, schema, columns)
    return InputFile(
        path,
        stat.st_size,
        stat.st_mtime_ns,
        tuple(group.num_rows for group in groups),
        sum(group.total_byte_size for group in groups),
    )


@dataclass(frozen=True)
class InputReader:
    """Reads the rows of one job."""

    job: LoadJob

    @cached_property
    def columns(self) -> tuple[ColumnDef, ...]:
        """The columns as regions know them."""
        return columns_told(column.stored for column in self.job.columns)

    @cached_property
    def row_rules(self) -> tuple[RowRule, ...]:
        """The constraints that rows must satisfy. Raises Refused for one that does not fit the
        columns."""
        required = [
            RowCheck(constraint=NO_NULL, kind="not-null", columns=[column.id])
            for column in self.columns
            if not column.nullable and column.id not in self.job.key
        ]
        return tuple(RowRule.of(check, self.columns) for check in (*required, *self.job.checks))

    @property
    def has_one_region(self) -> bool:
        """Whether all rows of the table belong to one region."""
        return self._router.regions == 1

    def rows(self, piece: Piece) -> Iterator[pa.Table]:
        """`_region`, `_key` and the values of all columns, some rows at a time, as they come."""
        for batch in self._batches(piece, None):
            yield self._stored(piece.file.path, batch)

    def samples(self, piece: Piece) -> list[Sample]:
        """One of each SAMPLE_ROWS rows."""
        names = [self._known[id].name for id in self.job.key]
        samples: list[Sample] = []
        skipped = 0
        for batch in self._batches(piece, names):
            places = pa.array(range(skipped, batch.num_rows, SAMPLE_ROWS), pa.int64())
            skipped = (skipped - batch.num_rows) % SAMPLE_ROWS
            keyed = self._keyed(piece.file.path, batch.take(places))
            columns = (keyed[name].to_pylist() for name in (REGION, KEY))
            samples += [Sample(region, key) for region, key in zip(*columns, strict=True)]
        return samples

    def _batches(self, piece: Piece, names: list[str] | None) -> Iterator[pa.RecordBatch]:
        path = piece.file.path
        with _refused_if_unreadable(path):
            stat = os.stat(path)
            if (stat.st_size, stat.st_mtime_ns) != (piece.file.bytes, piece.file.modified_ns):
                raise _refused(path, "a changed file", "the file as it was at the start")
            with pq.ParquetFile(path, memory_map=False) as file:
                present = None
                if names is not None:
                    present = [name for name in names if name in file.schema_arrow.names]
                batches = file.iter_batches(
                    BATCH_ROWS, row_groups=list(piece.groups), columns=present
                )
                for batch in _within(batches, piece.first, piece.rows):
                    batch.validate(full=True)
                    yield batch

    def _stored(self, path: str, batch: pa.RecordBatch) -> pa.Table:
        arrays = self._keyed(path, batch)
        for column in self._known.values():
            if column.field not in arrays:
                arrays[column.field] = self._values(path, column, batch)
        names = [REGION, KEY, *(column.name for column in self.columns)]
        stored = pa.RecordBatch.from_arrays([arrays[name] for name in names], names=names)
        with _naming(path):
            check_rows(stored)
        return pa.Table.from_batches([stored])

    def _keyed(self, path: str, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Region and key of each row, and the columns that make them."""
        key = [self._known[id] for id in self.job.key]
        arrays = {column.field: self._values(path, column, batch) for column in key}
        for column in key:
            if arrays[column.field].null_count:
                raise _refused(path, f"null in {column.name}", "a value: it is in the primary key")
        with _naming(path):
            keys = encode_batch([part.type for part in key], [arrays[part.field] for part in key])
            check_keys(keys)
        routed_by = [arrays[self._known[id].field] for id in self.job.partition.columns]
        return {REGION: self._router.numbers(routed_by), KEY: keys, **arrays}

    def _values(self, path: str, column: LayoutColumn, batch: pa.RecordBatch) -> pa.Array:
        if column.name not in batch.schema.names:
            (value,) = array_of(column, [column.default])
            return pa.repeat(value, batch.num_rows)
        source = batch.column(column.name)
        with _naming(path):
            values = cast_column(column, source)
            if values.type == pa.float32() and not _is_the_same(source, values):
                raise Refused("invalid-request", found=str(source.type), expected="a float32")
        return values

    @cached_property
    def _known(self) -> Mapping[int, LayoutColumn]:
        """The columns that users know, by id. The others have no name that a file could have."""
        return {column.stored.id: _column_of(column) for column in self.job.columns}

    @cached_property
    def _router(self) -> Router:
        rule = self.job.partition
        return router(rule, [self._known[id].type for id in rule.columns])


def _within(
    batches: Iterable[pa.RecordBatch], first: int, rows: int | None
) -> Iterator[pa.RecordBatch]:
    """Yields *rows* rows from the row *first* on; None: all that follow. Decodes the rows before
    them too, but not those after them."""
    for batch in batches:
        part = batch.slice(first, rows)
        first = max(first - batch.num_rows, 0)
        if part.num_rows:
            yield part
        if rows is not None:
            rows -= part.num_rows
            if not rows:
                return


def fits(arrow_type: pa.DataType, type: ColumnType) -> bool:
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return pa.types.is_null(arrow_type) or _SOURCES[type.name](arrow_type)


def _column_of(spec: LoadColumn) -> LayoutColumn:
    type, stored = parse_type(spec.stored.type), spec.stored
    otherwise = None if spec.otherwise is None else from_json(type, spec.otherwise)
    return LayoutColumn(stored.id, spec.name or f"\0{stored.id}", type, stored.nullable, otherwise)


def _check_schema(path: str, schema: pa.Schema, columns: Sequence[LoadColumn]) -> None:
    by_name = {column.name: column for column in columns if column.name is not None}
    if len(set(schema.names)) < len(schema.names):
        raise _refused(path, "a column twice", "each column once")
    for field in schema:
        if field.name not in by_name:
            raise _refused(path, f"a column {field.name}", "columns of the table")
        type = parse_type(by_name[field.name].stored.type)
        if not fits(field.type, type):
            raise _refused(
                path, f"{field.type} in {field.name}", f"a type that {type.text} can hold"
            )
    for name, column in by_name.items():
        if name not in schema.names and not column.stored.nullable and column.otherwise is None:
            raise _refused(path, f"no column {name}", "it: it is not null and has no default")


def _is_the_same(source: pa.Array, values: pa.Array) -> bool:
    """Down to the last bit of a float64."""
    if not pa.types.is_float64(source.type):
        return True
    back = values.cast(pa.float64())
    same = pc.or_(pc.equal(back, source), pc.and_(pc.is_nan(back), pc.is_nan(source)))
    return bool(pc.all(same, min_count=0).as_py())


def _refused(path: str, actual: str, expected: str) -> Refused:
    where = f"{actual} in {path}"
    return Refused("invalid-request", pointer="/paths", found=where, expected=expected)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except Refused as error:
        where = f"{error.facts.get('found')} in {path}"
        raise Refused(error.code, **{**error.facts, "found": where}) from error


@contextmanager
def _refused_if_unreadable(path: str) -> Iterator[None]:
    """An input is refused for what it is; a disk that does not answer now may later."""
    try:
        yield
    except (FileNotFoundError, PermissionError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise _refused(path, reason, "a Parquet file that executors can read") from error
    except OSError as error:
        raise Unavailable("not-ready", what=path, reason=str(error)) from error
