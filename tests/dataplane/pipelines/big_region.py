"""A region four times the heap of Spark's driver: no row of it passes through the driver.

Takes minutes and 6 GB of disk, so it is collected only by name: `make bench` runs it.
"""

import re
from pathlib import Path

import pytest

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from dataplane.region.place import RegionLimits
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.rig import Cluster, big_rows, move_and_adopt
from tests.dataplane.region.rig import order, place

HEAP_BYTES = 512 << 20  # SparkSettings.driver_memory
ROW_BYTES = 8192
FILES, FILE_ROWS = 84, 4096
LOG_BATCHES = 24  # of FILE_ROWS each: more than a third of all bytes is rewritten

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1200),
]


async def test_given_a_region_of_four_heaps_when_moved_then_it_is_the_same(
    spark: Warm, cluster: Cluster
) -> None:
    region = cluster.create(memtable_bytes=2 << 30)
    for number in range(FILES + LOG_BATCHES):
        rows = big_rows(number * FILE_ROWS // 2, number, FILE_ROWS, row_bytes=ROW_BYTES)
        cluster.write(region, rows)
        if number < FILES:
            region.maintenance.flush()
    region.close()
    limits = RegionLimits(memtable_bytes=2 << 30)
    successor = Region.open(
        place(LocalDisk(), cluster.new_root, limits=limits), order(2, cluster.old_root)
    )

    result = await move_and_adopt(spark.jobs, successor)

    assert result.rows_in == (FILES + LOG_BATCHES) * FILE_ROWS
    assert (result.copied_files, result.rewritten_segments) == (FILES, 1)
    rows_bytes = result.rows_in * ROW_BYTES
    print(f"{rows_bytes >> 20} MiB of rows, {result.bytes_in >> 20} MiB of files and log")
    assert result.bytes_in > 4 * HEAP_BYTES
    assert spark.jobs.driver_pid is not None
    print("driver's own Python:", resident(spark.jobs.driver_pid))


def resident(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s*(\d+ kB)", status)
    assert found
    return found[1]
