"""Rows of the fake plane as a load brings them: where they belong, and what is wrong with them."""

from dataplane.region.check.row_checks import RowRule, violations
from dataplane.region.format.columns import columns_told
from metasrv_base.errors import Refused
from metasrv_base.schema.partition import router
from metasrv_base.wire.node.jobs import LoadedRegion, LoadJob, LoadJobResult
from metasrv_base.wire.node.offenders import OFFENDERS_MAX
from tests.fakes.datanodes.disk import Rows
from tests.fakes.datanodes.index_rows import INT64, as_table, key_of, primary_key
from tests.fakes.datanodes.serving import data_file


def routed(job: LoadJob, rows: Rows) -> dict[int, Rows]:
    """By region number, of tables that are cut by their key, an int64."""
    way = router(job.partition, [INT64])
    found: dict[int, set[str]] = {}
    for row in rows:
        found.setdefault(way.number((int(key_of(row)),)), set()).add(row)
    return {number: frozenset(some) for number, some in found.items()}


def loaded(job: LoadJob, rows: Rows, by_region: dict[int, Rows]) -> LoadJobResult:
    """Raises Refused for other rows than an earlier job has read."""
    digest = " ".join(sorted(rows))
    if job.input_digest not in (None, digest):
        raise Refused("invalid-request", pointer="/paths", found="other files")
    columns = columns_told(one.stored for one in job.columns)
    row_rules = [RowRule.of(check, columns) for check in job.checks]
    broken, total = violations(as_table(rows, columns), row_rules, OFFENDERS_MAX)
    named = [
        one.model_copy(update={"row_key": primary_key(bytes.fromhex(one.row_key).decode())})
        for one in broken
    ]
    keys = [key_of(row) for row in rows]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    return LoadJobResult(
        job_id=job.job_id,
        input_digest=digest,
        files_in=len(job.paths),
        rows_in=len(rows),
        bytes_in=len(rows),
        bytes_out=len(rows),
        regions=[
            LoadedRegion(
                number=one.number,
                files=[data_file(f"{job.attempt}/rows.parquet", by_region[one.number])],
            )
            for one in job.regions
            if one.number in by_region
        ],
        repeated=[primary_key(key.decode()) for key in repeated],
        repeated_total=len(repeated),
        violations=named,
        violations_total=total,
    )
