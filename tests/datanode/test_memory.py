"""A datanode's memory is bounded by its settings, however much a region holds."""

from pathlib import Path

import pytest

from tests.datanode.conftest import StartNode
from tests.datanode.process import DatanodeProcess
from tests.node_conformance.node import ARROW, TABLE, Node, Write

pytestmark = [pytest.mark.process, pytest.mark.slow]

MEMTABLE_BYTES = 2 << 20
ROW_BYTES = 2_500
BATCH_ROWS = 500
WARM_ROWS = 8_000
"""By then every buffer that a flush, a read or a scan needs has been allocated once."""
ROWS = 90_000
"""A hundred memtables, in one answer of a scan."""
GROWTH_BYTES_MAX = 96 << 20
"""Less than half of the region; allocators that keep what was freed were seen to take 60 MB."""


def resident_bytes(process: DatanodeProcess) -> int:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * 4096


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


def test_given_a_region_a_hundred_times_its_memtable_when_scanned_then_memory_is_bounded(
    start_node: StartNode,
) -> None:
    flags = {"memtable_bytes": str(MEMTABLE_BYTES), "block_cache_bytes": str(MEMTABLE_BYTES)}
    process, node = start_node(**flags)
    region = node.created()
    write_rows(node, region, 0, WARM_ROWS)
    assert scanned_bytes(node, region) >= WARM_ROWS * ROW_BYTES
    before = resident_bytes(process)

    write_rows(node, region, WARM_ROWS, ROWS)
    for _ in range(3):
        assert scanned_bytes(node, region) >= ROWS * ROW_BYTES

    assert resident_bytes(process) - before < GROWTH_BYTES_MAX
