"""A region without a fault, and the job that looks it through."""

from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from metasrv_base.expressions.check import asked
from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.checks import CheckedIndex
from metasrv_base.wire.node.jobs import CheckJob, RowCheck
from tests.dataplane.pipelines.rig import Cluster
from tests.dataplane.region.entries import INDEX, OTHER, SCHEMA, Place, Value, write_mixed
from tests.dataplane.region.rig import SPEC

MARK = "check"
COUNT = 300
TYPES = {column.id: parse_type(column.type) for column in SPEC.columns}
POSITIVE = RowCheck(
    constraint=8, kind="check", columns=[1], expression=asked("n > 0", {"n": 1}, TYPES)
)


def entry_key(text: str, row: bytes) -> bytes:
    return encode_entry([TYPES[2]], (text,), row, unique=False)


def row_and_entry(number: int) -> dict[Place, Value]:
    row, text = b"%04d" % number, f"v{number * 7 % COUNT}"
    return {(ROWS, row): (number + 1, text), (INDEX, entry_key(text, row)): row}


def sound_region(cluster: Cluster) -> Region:
    """In two files of rows and of entries, and some in the log."""
    region = cluster.create()
    region.set_schema(SCHEMA)
    for part in range(3):
        values: dict[Place, Value] = {}
        for number in range(part, COUNT, 3):
            values |= row_and_entry(number)
        write_mixed(region, f"s{part}", dict(sorted(values.items())))
        if part < 2:
            region.maintenance.flush()
    return region


def check_job(region: Region, *, owned: tuple[int, ...] = (1, 2)) -> CheckJob:
    return CheckJob(
        job_id="check",
        procedure="p1",
        snapshot=region.snapshot(MARK, [INDEX, OTHER]),
        owned=list(owned),
        required=[2],
        indexes=[CheckedIndex(id=INDEX, columns=[2], complete=True)],
        checks=[POSITIVE],
    )
