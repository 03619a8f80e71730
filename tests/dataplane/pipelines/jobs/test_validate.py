"""Rows of a region as of a mark that break a constraint, found by Spark."""

import os
from pathlib import Path

import pytest

from dataplane.region.engine.region import Region
from dataplane.region.format.columns import ColumnDef, RegionOriginColumn
from dataplane.region.format.schema import RegionSchema
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.expressions.check import asked
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.jobs import RowCheck, ValidateJob
from metasrv_base.wire.node.offenders import OFFENDERS_MAX, ViolatingRow
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.jobs.region_data import MARK, region_of
from tests.dataplane.pipelines.rig import Cluster, Seen
from tests.dataplane.region.rig import SPEC

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="session")]

TYPES = {column.id: parse_type(column.type) for column in SPEC.columns}
POSITIVE = RowCheck(
    constraint=8, kind="check", columns=[1], expression=asked("n > 0", {"n": 1}, TYPES)
)
GIVEN = RowCheck(constraint=7, kind="not-null", columns=[2])
SMALL = ColumnDef(
    id=3, type="int8", nullable=False, origin_columns=(RegionOriginColumn(id=1, type="int64"),)
)
YES_OR_NO = RowCheck(constraint=9, kind="convertible", columns=[3], to_type="boolean")


def job_of(region: Region, *checks: RowCheck) -> ValidateJob:
    return ValidateJob(
        job_id="validate",
        procedure="p1",
        snapshot=region.snapshot(MARK),
        checks=list(checks),
    )


async def test_given_rows_that_break_constraints_when_validated_then_those_at_the_mark_are_named(
    spark: Warm, cluster: Cluster
) -> None:
    region = region_of(
        cluster,
        {b"a": (1, "x"), b"b": (2, None), b"c": (-3, "y"), b"d": (4, None)},
        {b"d": None, b"e": (5, "z"), b"a": (0, "x")},
    )
    cluster.write(region, {b"b": (2, "now"), b"f": (-1, None)})
    region.set_schema(RegionSchema(9, 0, (*SPEC.columns, SMALL)))
    job, seen = job_of(region, GIVEN, POSITIVE, YES_OR_NO), Seen()

    done = await spark.jobs.validate(job, progress=seen)

    assert done.rows_in == 4
    assert done.violations == [
        ViolatingRow(constraint=8, row_key="61", values={"1": 0}),
        ViolatingRow(constraint=7, row_key="62", values={"2": None}),
        ViolatingRow(constraint=9, row_key="62", values={"3": 2}),
        ViolatingRow(constraint=8, row_key="63", values={"1": -3}),
        ViolatingRow(constraint=9, row_key="63", values={"3": -3}),
        ViolatingRow(constraint=9, row_key="65", values={"3": 5}),
    ]
    assert done.violations_total == 6
    assert seen.reports[-1] == (job.snapshot.rows, job.snapshot.rows, "rows")


async def test_given_more_violations_than_are_listed_when_validated_then_all_are_counted(
    spark: Warm, cluster: Cluster
) -> None:
    count = OFFENDERS_MAX + 500
    region = region_of(cluster, {b"%04d" % number: (number, None) for number in range(count)})

    done = await spark.jobs.validate(job_of(region, GIVEN), progress=Seen())

    assert len(done.violations) == OFFENDERS_MAX
    assert (done.violations_total, done.rows_in) == (count, count)


async def test_given_what_cannot_be_judged_when_validated_then_it_fails_as_what_it_is(
    spark: Warm, cluster: Cluster
) -> None:
    region = region_of(cluster, {b"a": (1, None)})
    job = job_of(region, GIVEN)
    nothing = job.model_copy(
        update={"snapshot": job.snapshot.model_copy(update={"files": []}), "job_id": "empty"}
    )
    unknown = job.model_copy(
        update={"checks": [RowCheck(constraint=7, kind="not-null", columns=[9])]}
    )

    assert (await spark.jobs.validate(nothing, progress=Seen())).rows_in == 0
    with pytest.raises(Refused):
        await spark.jobs.validate(unknown, progress=Seen())
    (file,) = job.snapshot.files
    os.remove(Path(file.root, file.file.name))
    with pytest.raises(Unavailable) as failure:
        await spark.jobs.validate(job, progress=Seen())
    assert failure.value.code == "region-lost"
