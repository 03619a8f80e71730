"""Rows of Parquet files become files of regions, by Spark."""

from pathlib import Path

import pyarrow as pa
import pytest

from metasrv_base.errors import Refused
from metasrv_base.expressions.check import asked
from metasrv_base.schema.keycodec import encode
from metasrv_base.schema.partition import RangeRule
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.jobs import RowCheck
from metasrv_base.wire.node.offenders import ViolatingRow
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.load_rig import ID, NOTE, Table, brought, load_job, numbered
from tests.dataplane.pipelines.rig import Seen

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="session")]

ROWS = 150_000
"""Enough for more files than one of a region, and for more pieces than one of a file."""
INT64 = parse_type("int64")
POSITIVE = RowCheck(
    constraint=8, kind="check", columns=[1], expression=asked("n > 0", {"n": 1}, {1: INT64})
)


def key(id: int) -> str:
    return encode((INT64,), (id,)).hex()


async def test_given_files_in_any_order_when_loaded_then_every_region_has_its_rows_once(
    spark: Warm, tmp_path: Path
) -> None:
    """And where one region is loaded again, from the same files, it is given the same rows."""
    table, rule = Table(tmp_path), RangeRule(columns=(1,), bounds=((10,), (ROWS,)))
    table.add(3)
    ids = range(ROWS)
    brought(tmp_path / "in/a.parquet", numbered(*ids[::-2]), group_rows=40_000)
    brought(tmp_path / "in/b.parquet", numbered(*ids[0::2]))
    job, seen = load_job([str(tmp_path / "in")], table.wanted, partition=rule), Seen()

    done = await spark.jobs.load(job, progress=seen)
    again = job.model_copy(
        update={
            "job_id": "again",
            "attempt": "attempts/a2",
            "regions": job.regions[:1],
            "input_digest": done.input_digest,
        }
    )
    anew = await spark.jobs.load(again, progress=Seen())
    table.take(done.regions)

    assert (done.rows_in, done.files_in) == (ROWS, 2)
    assert [one.number for one in done.regions] == [0, 1], "the third has no row"
    first, second = (one.files for one in done.regions)
    assert (len(first), len(second)) == (1, 2)
    assert second[0].max_key < second[1].min_key
    assert table.notes() == {id: f"n{id}" for id in ids}
    assert [one.number for one in anew.regions] == [0]
    assert anew.regions[0].files[0].row_checksum == first[0].row_checksum
    assert seen.reports[-1] == (ROWS, ROWS, "rows")
    folders = [Path(one.root) / job.attempt for one in job.regions]
    assert [len(list(folder.iterdir())) for folder in folders[:2]] == [1, 2]
    assert not folders[2].exists()


async def test_given_rows_that_a_table_cannot_have_when_loaded_then_all_kinds_are_named(
    spark: Warm, tmp_path: Path
) -> None:
    table = Table(tmp_path)
    table.add(1)
    required = NOTE.model_copy(
        update={"stored": NOTE.stored.model_copy(update={"nullable": False})}
    )
    rows = pa.table({"id": [1, 2, -3, 2, 4, 1, 2], "note": ["a", None, "c", "d", "e", "f", "g"]})
    path = brought(tmp_path / "x.parquet", rows)
    job = load_job([path], table.wanted, columns=(ID, required), checks=[POSITIVE])
    stranger = brought(tmp_path / "y.parquet", pa.table({"id": [1], "odd": [2]}))

    done = await spark.jobs.load(job, progress=Seen())

    assert (done.repeated, done.repeated_total) == ([key(1), key(2)], 2)
    assert done.violations == [
        ViolatingRow(constraint=0, row_key=key(2), values={"2": None}),
        ViolatingRow(constraint=8, row_key=key(-3), values={"1": -3}),
    ]
    assert done.violations_total == 2
    with pytest.raises(Refused) as refusal:
        await spark.jobs.load(job.model_copy(update={"paths": [stranger]}), progress=Seen())
    assert refusal.value.facts["found"] == f"a column odd in {stranger}"
    other = {"input_digest": done.input_digest, "paths": [str(tmp_path)]}
    with pytest.raises(Refused):
        await spark.jobs.load(job.model_copy(update=other), progress=Seen())
