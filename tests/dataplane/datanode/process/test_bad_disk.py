"""A real datanode on a disk that takes no more, fails a sync, or is slow."""

import re
import resource
import shutil
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.dataplane.datanode.conftest import StartNode, heard
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import Node, Write

pytestmark = pytest.mark.process

KEY_BYTES, KEYS = 3_000, 10
SYNC_US = 60_000_000
"""Duration of the slow sync in microseconds, unless strace is ended earlier."""


def rows(number: int) -> list[Write]:
    """Some kilobytes that all bear one number."""
    padding = bytes(KEY_BYTES)
    return [Write(b"%03d%d" % (number, one) + padding, number) for one in range(KEYS)]


def numbers(node: Node, region: int, epoch: int) -> list[int]:
    found = node.scan(region, epoch=epoch, limit=100).rows
    counts = Counter(int(bytes.fromhex(row.key)[:3]) for row in found)
    assert set(counts.values()) == {KEYS}, "a batch is there whole"
    return list(counts)


def test_given_a_full_disk_when_written_then_507_says_where_and_nothing_acknowledged_is_lost(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    process, node = start_node()
    region = node.created()
    node.write(region, rows(0), "s0")
    node.write(region, rows(1), "s1")
    unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (80_000, unlimited[1]))

    refused = [node.post_batch(region, rows(2), "s2") for _ in range(3)]

    assert [answer.status_code for answer in refused] == [507] * 3
    body = refused[0].json()
    assert body["code"] == "storage-full"
    assert body["facts"]["path"].startswith(node.root)
    assert body["facts"]["free_bytes"] >= 0
    assert Path(body["facts"]["disk"]).is_mount()
    assert numbers(node, region, epoch=1) == [0, 1]

    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
    node.write(region, rows(2), "s2")
    process.kill()
    process.start()
    node.url = process.url
    heard(metasrv, process)
    assert node.order(node.open_order(region, 2)).results[0].error is None
    assert numbers(node, region, epoch=2) == [0, 1, 2]


def test_given_a_sync_that_fails_when_written_then_unknown_and_the_opening_has_ended(
    start_node: StartNode, tmp_path: Path
) -> None:
    assert shutil.which("strace"), "fails a sync by strace"
    process, node = start_node()
    region = node.created()
    node.write(region, rows(0), "s0")

    with process.traced(tmp_path / "failed", "fdatasync", inject="error=EIO:when=1"):
        failed = node.post_batch(region, rows(1), "s1")
    later = [node.post_batch(region, rows(2), f"t{number}").status_code for number in range(3)]

    assert (failed.status_code, failed.json()["code"]) == (504, "outcome-unknown")
    assert set(later) <= {503, 404}
    assert len(re.findall(r"EIO", (tmp_path / "failed").read_text())) == 1
    assert node.order(node.open_order(region, 2)).results[0].error is None
    node.write(region, rows(1), "s1", epoch=2)
    assert numbers(node, region, epoch=2) == [0, 1]


def test_given_no_room_for_a_folder_when_flushed_then_the_region_keeps_its_rows_and_serves(
    start_node: StartNode, tmp_path: Path
) -> None:
    assert shutil.which("strace"), "fills the disk by strace"
    process, node = start_node()
    region = node.created()
    node.write(region, rows(0), "s0")
    flush = f"{node.url}/node/v1/regions/{region}/flush"

    with process.traced(tmp_path / "full", "mkdir,mkdirat", inject="error=ENOSPC"):
        refused = node.http.post(flush)
        node.write(region, rows(1), "s1")

    assert (refused.status_code, refused.json()["code"]) == (507, "storage-full")
    assert node.http.post(flush).status_code == 200
    assert numbers(node, region, epoch=1) == [0, 1]


def test_given_a_slow_disk_when_written_then_the_node_is_heard_and_it_is_acknowledged(
    start_node: StartNode, metasrv: FakeMetasrv, tmp_path: Path
) -> None:
    assert shutil.which("strace"), "slows syncs by strace"
    process, node = start_node()
    region = node.created()
    node.write(region, rows(0), "s0")

    with process.traced(tmp_path / "slow", "fdatasync", inject=f"delay_enter={SYNC_US}:when=1"):
        writing = threading.Thread(target=node.write, args=(region, rows(1), "s1"))
        writing.start()
        seen = len(metasrv.heard)
        metasrv.wait_for(lambda: len(metasrv.heard) >= seen + 2)
        assert writing.is_alive(), "heartbeats do not wait for the disk"
    writing.join()

    assert numbers(node, region, epoch=1) == [0, 1]
