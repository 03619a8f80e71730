"""Jobs without Spark find what Spark finds: here, rows and entries that do not fit."""

from random import Random

from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.checks import CheckedIndex, DataFaults, DataRule
from metasrv_base.wire.node.jobs import CheckJob, CheckResult
from tests.dataplane.region.entries import INDEX, SCHEMA, new_region, write_mixed
from tests.dataplane.region.rig import A
from tests.sim.cluster.disks import Disks
from tests.sim.cluster.jobs import SimJobs
from tests.sim.cluster.message_fates import Weather
from tests.sim.loop import SimLoop, run

MARK = "check"
TEXT = parse_type("string")


def entry(text: str, row: bytes) -> bytes:
    return encode_entry([TEXT], (text,), row, unique=False)


def checked(disks: Disks, region: Region) -> CheckResult:
    region.set_schema(SCHEMA, MARK)
    job = CheckJob(
        job_id="j",
        procedure="p",
        snapshot=region.snapshot(MARK, None),
        owned=[1, 2],
        required=[2],
        indexes=[CheckedIndex(id=INDEX, columns=[2], complete=True)],
        checks=[],
    )

    async def main(loop: SimLoop) -> CheckResult:
        loop.thread_ms = lambda: 1.0
        jobs = SimJobs(disks, loop, "meta-1", Weather(Random(1)))
        return await jobs.check(job, progress=lambda done, total, unit: None)

    return run(main, 1)


def test_given_rows_and_entries_when_checked_then_only_what_does_not_fit_is_found() -> None:
    disks = Disks()
    region = new_region(MemoryDisk(disks.store(A)))
    write_mixed(region, "s1", {(ROWS, b"a"): (1, "x"), (INDEX, entry("x", b"a")): b"a"})
    sound = checked(disks, region)
    region.set_schema(SCHEMA, close=[MARK])
    write_mixed(region, "s2", {(ROWS, b"b"): (2, None), (INDEX, entry("y", b"a")): b"a"})

    wrong = checked(disks, region)

    assert (sound.rows_in, sound.entries, sound.faults) == (1, 1, DataFaults())
    assert wrong.faults.totals == {
        DataRule.REQUIRED_MISSING: 1,
        DataRule.ENTRY_WRONG: 1,
        DataRule.ENTRY_MISSING: 1,
    }
