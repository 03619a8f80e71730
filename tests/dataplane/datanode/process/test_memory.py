"""A datanode's memory is bounded by its settings, however much a region holds."""

import re
from pathlib import Path

import pytest

from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.metasrv.playground.waiting import until
from tests.node_conformance.node import ARROW, TABLE, Node, Write

pytestmark = [pytest.mark.process, pytest.mark.slow]

MEMTABLE_BYTES = 2 << 20
ROW_BYTES = 2_500
BATCH_ROWS = 500
WARM_ROWS = 8_000
"""By then every buffer that a flush, a read or a scan needs has been allocated once."""
ROWS = 90_000
"""A hundred memtables, in one answer of a scan."""
FILES = 'datanode_region_files{of="largest"}'
MERGED = "datanode_merged_files_total"
ARROW_PEAK = 'datanode_arrow_bytes{at="peak"}'
ARROW_BYTES_MAX = 48 << 20
"""Memtables, what is flushed, a window of a merge and of a scan: a fifth of the region."""
GROWTH_BYTES_MAX = 96 << 20
"""Less than half of the region: that, Python's own part of it, and what allocators keep of both."""
FILES_LEFT_MAX = 16
"""With more files, four are of one tier and are merged: the region's are of five tiers."""
LIMIT_S = 240


def peak_bytes(process: DatanodeProcess) -> int:
    """The most that was resident since `forget_peak`."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    return int(line) * 1024


def forget_peak(process: DatanodeProcess) -> int:
    """Resets the peak of resident memory; returns the bytes resident now."""
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    return peak_bytes(process)


def write_rows(node: Node, region: int, first: int, end: int) -> None:
    padding = b"x" * (ROW_BYTES - 8)
    for start in range(first, end, BATCH_ROWS):
        numbers = range(start, start + BATCH_ROWS)
        rows = [Write(number.to_bytes(8) + padding, number) for number in numbers]
        node.write(region, rows, f"s{start}")


def scanned_bytes(node: Node, region: int) -> int:
    """Read as a stream, nothing kept."""
    head = {"table_id": TABLE, "schema_version": 1, "epoch": 1, "limit": 100_000}
    url = f"{node.url}/node/v1/regions/{region}/scan"
    with node.http.stream("POST", url, json=head, headers={"accept": ARROW}) as answer:
        return sum(map(len, answer.iter_bytes()))


def test_given_a_region_a_hundred_times_its_memtable_when_merged_and_scanned_then_memory_is_bounded(
    start_node: StartNode,
) -> None:
    flags = {"memtable_bytes": str(MEMTABLE_BYTES), "block_cache_bytes": str(MEMTABLE_BYTES)}
    process, node = start_node(**flags)
    region = node.created()
    write_rows(node, region, 0, WARM_ROWS)
    assert scanned_bytes(node, region) >= WARM_ROWS * ROW_BYTES
    before = forget_peak(process)

    write_rows(node, region, WARM_ROWS, ROWS)
    until(lambda: node.metric(FILES) <= FILES_LEFT_MAX, LIMIT_S)
    for _ in range(2):
        assert scanned_bytes(node, region) >= ROWS * ROW_BYTES

    assert node.metric(MERGED) >= FILES_LEFT_MAX
    assert node.metric(ARROW_PEAK) < ARROW_BYTES_MAX
    assert peak_bytes(process) - before < GROWTH_BYTES_MAX
