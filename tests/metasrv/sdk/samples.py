"""One table with a column of each type, and rows for it."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from metasrv_base.wire.api.tables import ColumnSpec, HashPartition, TableSpec

TYPES = {
    "flag": "boolean",
    "small": "int8",
    "short": "int16",
    "middle": "int32",
    "long": "int64",
    "single": "float32",
    "double": "float64",
    "price": "decimal(10,2)",
    "text": "string",
    "raw": "binary",
    "day": "date",
    "second": "timestamp(s)",
    "milli": "timestamp(ms)",
    "micro": "timestamp(us)",
    "nano": "timestamp(ns)",
}
ROW: dict[str, Any] = {
    "id": 1,
    "part": "a",
    "flag": True,
    "small": -128,
    "short": 32767,
    "middle": -1,
    "long": 2**62,
    "single": 0.5,
    "double": -1.25,
    "price": Decimal("12.50"),
    "text": "\u00fcber\x00null",
    "raw": b"\x00\xff",
    "day": date(2013, 1, 31),
    "second": datetime(2013, 1, 31, 12, tzinfo=UTC),
    "milli": datetime(2013, 1, 31, 12, 0, 0, 5000, tzinfo=UTC),
    "micro": datetime(2013, 1, 31, 12, 0, 0, 7, tzinfo=UTC),
    "nano": 1_359_633_600_000_000_001,
}
EMPTY: dict[str, Any] = {"id": 2, "part": "", **dict.fromkeys(TYPES)}


def spec(regions: int = 1, defaults: dict[str, Any] | None = None) -> TableSpec:
    """Keyed by (id, part), spread by both."""
    given = defaults or {}
    key = [
        ColumnSpec(name="id", type="int64", nullable=False),
        ColumnSpec(name="part", type="string", nullable=False),
    ]
    values = [
        ColumnSpec(name=name, type=text, default=given.get(name)) for name, text in TYPES.items()
    ]
    return TableSpec(
        name="t",
        columns=(*key, *values),
        primary_key=("id", "part"),
        partition=HashPartition(by="hash", columns=("id", "part"), count=regions),
    )


def small(regions: int = 1) -> TableSpec:
    """`id: int64`, `note: string`."""
    return TableSpec(
        name="t",
        columns=(
            ColumnSpec(name="id", type="int64", nullable=False),
            ColumnSpec(name="note", type="string"),
        ),
        primary_key=("id",),
        partition=HashPartition(by="hash", columns=("id",), count=regions),
    )
