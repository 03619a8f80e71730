"""Regions for jobs to read, and damage done to their files."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from dataplane.region.engine.region import Region
from dataplane.region.format.schema import RegionSchema
from metasrv_base.wire.node.jobs import BackfillJob, JobIndex
from tests.dataplane.pipelines.rig import (
    Cluster,
)
from tests.dataplane.region.rig import SPEC, Row

INDEX, MARK = 3, "reorg"
BY_TEXT = (2,)


SCHEMA = RegionSchema(2, 1, SPEC.columns, frozenset({INDEX}), frozenset())


def region_of(cluster: Cluster, *batches: Mapping[bytes, Row | None]) -> Region:
    """Each batch in a file of its own but for the last, which is in the log; the mark is open."""
    region = cluster.create()
    for batch in batches:
        region.maintenance.flush()
        cluster.write(region, dict(batch))
    region.set_schema(SCHEMA, MARK)
    return region


def backfill_job(
    region: Region, columns: Sequence[int] = BY_TEXT, *, unique: bool = False, attempt: str = "one"
) -> BackfillJob:
    return BackfillJob(
        job_id=f"backfill-{attempt}",
        procedure="p1",
        attempt=f"attempts/{attempt}",
        snapshot=region.snapshot(MARK),
        index=JobIndex(id=INDEX, columns=list(columns), unique=unique),
    )


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


EVERY_TYPE: dict[str, list[object]] = {
    "boolean": [True, None, False],
    "int8": [-128, None, 127],
    "int16": [-(1 << 15), None, 7],
    "int32": [-(1 << 31), None, 7],
    "int64": [-(1 << 63), None, (1 << 63) - 1],
    "float32": [-0.0, None, float("nan")],
    "float64": [float("-inf"), None, float("nan")],
    "string": ["", None, "\U0001f642"],
    "binary": [b"", None, b"\x00\xff"],
    "date": [date(1, 1, 1), None, date(9999, 12, 31)],
    "decimal(38,0)": [Decimal("-" + "9" * 38), None, Decimal(1)],
    "decimal(5,2)": [Decimal("-999.99"), None, Decimal("0.01")],
    "timestamp(s)": [NOON, None, NOON],
    "timestamp(ns)": [-1, None, (1 << 63) - 1],
}
