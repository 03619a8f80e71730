"""A table as a PySpark DataFrame: one partition per region, read by executors through this SDK.

Needs nothing of PySpark but the session that is handed in, and rows never touch the driver.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from metasrv.sdk.connections import connect
from metasrv.sdk.urls import urls_of
from metasrv_base.errors import Conflict, Refused

_DDL = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
SPARK_UNIT = "us"


class Session(Protocol):
    """The part of a `SparkSession` that is used, classic or Connect."""

    def range(self, start: int, end: int, step: int, numPartitions: int) -> Any: ...  # noqa: N803  # Spark's name


def read_table(
    spark: Session,
    name: str,
    metasrv: str | Sequence[str],
    columns: Sequence[str] | None = None,
    max_lag: int | None = None,
) -> Any:
    """The DataFrame. It is lazy: each action reads the table again, as it is then; it fails once a
    column has another type. *max_lag*: the age in ms that rows may have when they are read, 1 to
    3,600,000, so that executors read from copies of regions too; None: from their leaders.

    Timestamps of nanoseconds are Spark's microseconds; a value that loses digits fails the job.
    """
    urls = urls_of(metasrv)
    with connect(urls) as client:
        table = client.table(name)
        body = client.tables.get(name)
        numbers = table.regions()
        schema = table.schema()
    names = list(schema.names if columns is None else columns)
    by_name = {column.name: column.type for column in body.columns}
    fields = ", ".join(f"`{column}` {ddl_type(by_name, column)}" for column in names)
    work = spark.range(0, len(numbers), 1, len(numbers))
    planned = pa.schema([schema.field(column) for column in names])
    return work.mapInArrow(reader(urls, name, numbers, planned, max_lag), fields)


def ddl_type(types: dict[str, str], column: str) -> str:
    """The type of a column, as Spark writes it. Raises Refused."""
    if column not in types:
        raise Refused("invalid-request", pointer="/columns", found=column, expected="a column")
    text = types[column]
    if text.startswith("decimal"):
        return text.upper()
    return _DDL[text.partition("(")[0]]


def reader(
    urls: Sequence[str],
    name: str,
    numbers: Sequence[int],
    planned: pa.Schema,
    max_lag: int | None = None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the function that executors run: it takes places in `numbers` and yields the rows of
    those regions."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with connect(urls) as client:
            table = client.table(name)
            for batch in batches:
                region_numbers = [numbers[position] for position in batch.column(0).to_pylist()]
                for rows in table.scan_regions(region_numbers, planned.names, max_lag):
                    yield for_spark(as_planned(rows, planned))

    return read


def as_planned(rows: pa.RecordBatch, planned: pa.Schema) -> pa.RecordBatch:
    """Raises Conflict `schema-version-stale` where a type is another by now: Spark would round a
    decimal of other places without a word."""
    if rows.schema.types != planned.types:
        actual_types, expected = map(str, (rows.schema.types, planned.types))
        raise Conflict("schema-version-stale", found=actual_types, expected=expected)
    return rows


def for_spark(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Spark knows timestamps of microseconds only."""
    arrays = [
        column.cast(pa.timestamp(SPARK_UNIT, tz="UTC"))
        if pa.types.is_timestamp(column.type)
        else column
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
