"""Merging on a real node: its files stay few and its rows what they are, whatever befalls it."""

import random
import resource
from pathlib import Path

import pytest

from tests.dataplane.datanode.conftest import StartNode, heard
from tests.metasrv.playground.waiting import until
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import Node, Write

pytestmark = pytest.mark.process

LIMIT_S = 240
KEYS = 40
FILES = 12
"""Flushed in each life of the node. Of the same size: four are merged."""
DONE = 'datanode_merges_total{outcome="done",role="leader"}'
FAILED = 'datanode_merges_total{outcome="failed",role="leader"}'
LARGEST = 'datanode_region_files{of="largest"}'

Model = dict[bytes, int]


def flush_files(node: Node, region: int, epoch: int, model: Model) -> None:
    """Each file overwrites some rows of those before, and deletes some."""
    for number in range(FILES):
        writes = [
            Write(b"%04d" % key, None if (key + number) % 7 == 0 else epoch * 1000 + number)
            for key in range(number % 3, KEYS, 3)
        ]
        node.write(region, writes, f"s-{epoch}-{number}", epoch=epoch)
        for write in writes:
            if write.value is None:
                model.pop(write.key, None)
            else:
                model[write.key] = write.value
        assert node.post(region, "flush").status_code == 200


def stored(node: Node, region: int, epoch: int) -> Model:
    rows = node.scan(region, epoch=epoch, limit=1000).rows
    return {bytes.fromhex(row.key): int(str(row.values["1"])) for row in rows}


def data_files(node: Node, region: int) -> int:
    return len(list(Path(node.root_of(region)).glob("data/*.parquet")))


def test_given_a_node_that_merges_when_killed_then_files_become_few_and_every_row_is_as_it_was(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    process, node = start_node()
    region, model = node.created(), Model()
    for epoch in (1, 2):
        flush_files(node, region, epoch, model)
        until(lambda: node.metric(DONE) >= 1, LIMIT_S)
        process.kill()
        process.start()
        node.url = process.url
        heard(metasrv, process)
        assert node.order(node.open_order(region, epoch + 1)).results[0].error is None
        assert stored(node, region, epoch + 1) == model

    flush_files(node, region, 3, model)

    until(lambda: 0 < node.metric(LARGEST) < FILES, LIMIT_S)
    until(lambda: data_files(node, region) == node.metric(LARGEST), LIMIT_S)
    assert stored(node, region, epoch=3) == model


def test_given_a_disk_without_room_for_a_merge_when_due_then_the_node_serves_on(
    start_node: StartNode,
) -> None:
    process, node = start_node()
    region = node.created()
    limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, limits[1]))

    noise = random.Random(1)
    for number in range(4):
        writes = [Write(noise.randbytes(1_000), number) for _ in range(40)]
        node.write(region, writes, f"s-{number}")
        assert node.post(region, "flush").status_code == 200

    until(lambda: node.metric(FAILED) >= 1, LIMIT_S)
    until(lambda: data_files(node, region) == 4, LIMIT_S)
    node.write(region, [Write(b"goes on", 4)], "s-4")
    assert node.checksum(region).rows == 161
