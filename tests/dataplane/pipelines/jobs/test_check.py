"""All that a region stores, held against a schema by Spark: one fault of each rule, exactly."""

from dataclasses import replace
from pathlib import Path

import pytest

from dataplane.region.format.columns import ColumnDef, RegionOriginColumn
from dataplane.region.format.families import ROWS
from metasrv_base.expressions.check import asked
from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.checks import DataFault, DataFaults, DataRule
from metasrv_base.wire.node.jobs import RowCheck
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.jobs.checked_data import (
    COUNT,
    MARK,
    TYPES,
    check_job,
    entry_key,
    sound_region,
)
from tests.dataplane.pipelines.rig import Cluster, Seen
from tests.dataplane.region.entries import INDEX, OTHER, SCHEMA, Place, Value, write_mixed
from tests.dataplane.region.rig import SPEC

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="session")]

NARROW = ColumnDef(
    id=3, type="int32", nullable=False, origin_columns=(RegionOriginColumn(id=1, type="int64"),)
)
POSITIVE_NOW = RowCheck(
    constraint=8,
    kind="check",
    columns=[NARROW.id],
    expression=asked("n > 0", {"n": NARROW.id}, {NARROW.id: parse_type(NARROW.type)}),
)


def leave_a_note(cluster: Cluster) -> None:
    Path(cluster.old_root, "notes").write_text("mine")


async def test_given_rows_that_have_their_entries_when_checked_then_nothing_is_wrong(
    spark: Warm, cluster: Cluster
) -> None:
    """Nor is anything missing of a column that no row was written with."""
    region = sound_region(cluster)
    region.set_schema(replace(SCHEMA, version=3, columns=(SPEC.columns[1], NARROW)), MARK)
    write_mixed(region, "later", {(ROWS, b"later"): (0, None)})
    now = {"owned": [1, 2, NARROW.id], "required": [2, NARROW.id], "checks": [POSITIVE_NOW]}
    job, seen = check_job(region).model_copy(update=now), Seen()

    done = await spark.jobs.check(job, progress=seen)

    assert done.faults == DataFaults()
    assert (done.rows_in, done.entries) == (COUNT, COUNT)
    stored = [one.file for one in job.snapshot.files]
    read = sum(file.rows * (2 if file.family == ROWS else 1) for file in stored)
    assert seen.reports[-1] == (read, read, "rows")


async def test_given_one_fault_of_each_rule_when_checked_then_each_is_listed_and_nothing_else(
    spark: Warm, cluster: Cluster
) -> None:
    region = sound_region(cluster)
    wrong = entry_key("ghost", b"none")
    planted: dict[Place, Value] = {
        (ROWS, b"a"): (1, "no entry"),
        (ROWS, b"b"): (2, None),
        (ROWS, b"c"): (-3, "below"),
        (INDEX, encode_entry([TYPES[2]], (None,), b"b", unique=False)): b"b",
        (INDEX, entry_key("below", b"c")): b"c",
        (INDEX, wrong): b"none",
        (OTHER, b"1"): b"a",
    }
    write_mixed(region, "planted", dict(sorted(planted.items())))
    region.set_schema(SCHEMA, MARK)
    leave_a_note(cluster)

    done = await spark.jobs.check(check_job(region, owned=(2,)), progress=Seen())

    by_rule = {fault.rule: fault for fault in done.faults.found}
    assert by_rule[DataRule.ENTRY_MISSING] == DataFault(
        rule=DataRule.ENTRY_MISSING,
        element=INDEX,
        row_keys=[b"a".hex()],
        values={"2": "no entry"},
        entry_key=entry_key("no entry", b"a").hex(),
    )
    assert by_rule[DataRule.ENTRY_WRONG] == DataFault(
        rule=DataRule.ENTRY_WRONG,
        element=INDEX,
        row_keys=[b"none".hex()],
        values={"2": "ghost"},
        entry_key=wrong.hex(),
    )
    assert by_rule[DataRule.REQUIRED_MISSING].row_keys == [b"b".hex()]
    assert by_rule[DataRule.CONSTRAINT_BROKEN].row_keys == [b"c".hex()]
    assert by_rule[DataRule.BYTES_UNEXPLAINED].file == "notes"
    assert done.faults.totals == {
        DataRule.VALUE_UNOWNED: COUNT + 3,
        DataRule.REQUIRED_MISSING: 1,
        DataRule.ENTRY_UNOWNED: 1,
        DataRule.ENTRY_MISSING: 1,
        DataRule.ENTRY_WRONG: 1,
        DataRule.CONSTRAINT_BROKEN: 1,
        DataRule.BYTES_UNEXPLAINED: 1,
    }
