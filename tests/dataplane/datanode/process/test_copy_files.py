"""A learner of a region that has flushed fetches its leader's files, joins, and may lead."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.dataplane.datanode.conftest import StartNode, heard
from tests.dataplane.datanode.process.copied import CopiedRegion, lost, started, until
from tests.node_conformance.node import Node, Write

pytestmark = pytest.mark.process

ROWS = 4_000
"""Rows of a flush; some 100 KB."""
SLOW = {"fetch_bytes_per_s": "150000"}
LOOKS_MAX = 50_000


class FlushedRegion(CopiedRegion):
    """A region whose leader has written its rows to files."""

    numbers: int = 0

    def fill(self, files: int) -> None:
        """Flushes so many files, beside a row that stays in the log."""
        for _ in range(files):
            first = self.numbers
            writes = [
                Write(b"%016x" % (n * 0x9E3779B97F4A7C15 % (1 << 64)), n)
                for n in range(first, first + ROWS)
            ]
            answer = self.leader.post_batch(self.region, writes, f"f{first}", epoch=self.epoch)
            assert answer.status_code == 200, answer.text
            flushed = self.leader.http.post(
                f"{self.leader.url}/node/v1/regions/{self.region}/flush"
            )
            assert flushed.status_code == 200, flushed.text
            self.numbers += ROWS

    @property
    def row_count(self) -> int:
        answers: list[int] = []

        def is_read() -> bool:
            answer = self.leader.post(self.region, "checksum", epoch=self.epoch)
            assert answer.status_code in (200, 503), answer.text
            answers.extend([answer.json()["rows"]] if answer.status_code == 200 else [])
            return answer.status_code == 200

        until(self.leader, is_read)
        return int(answers[-1])

    def add_learner(self, name: str) -> None:
        self.roles[name] = "learner"
        self.version += 1
        self.take(name, self.create_order(name))
        self.tell(*(each for each, role in self.roles.items() if role == "leader"))


def has_joined(region: CopiedRegion, name: str) -> bool:
    """Whether the leader has asked that it joins the set. metasrv is told so."""
    asked = [
        change for request in region.leader.metasrv.changes_asked for change in request.changes
    ]
    return any((change.change, change.node) == ("join", name) for change in asked)


def fetch_of(node: Node, region: int) -> dict[str, Any] | None:
    answer = node.http.get(f"{node.url}/node/v1/regions/{region}")
    assert answer.status_code == 200, answer.text
    fetch: dict[str, Any] | None = answer.json()["fetch"]
    return fetch


def until_it_fetches(node: Node, region: int) -> None:
    """Asks again at once: a fetch may be over within a few heartbeats."""
    for _ in range(LOOKS_MAX):
        if (fetch_of(node, region) or {"bytes": 0})["bytes"] > 0:
            return
    raise AssertionError("the node fetched nothing, or was not seen to")


def flushed_region(
    start_node: StartNode, names: Sequence[str] = ("dn-1", "dn-2"), **flags: str
) -> tuple[dict[str, Any], FlushedRegion]:
    processes, nodes = started(lambda name: start_node(name, **flags), names)
    region = FlushedRegion(nodes, {names[0]: "leader"})
    region.create()
    nodes[names[0]].metasrv.told.changes_copies = True
    return processes, region


def test_given_a_learner_of_a_flushed_region_when_the_leaders_disk_is_lost_then_every_row_is_there(
    start_node: StartNode,
) -> None:
    processes, region = flushed_region(start_node)
    region.fill(3)
    region.write(1)
    region.add_learner("dn-2")

    until(region.leader, lambda: has_joined(region, "dn-2"))
    region.write(2)

    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.row_count == 3 * ROWS + 2
    region.write(3)
    assert region.row_count == 3 * ROWS + 3


def test_given_a_node_that_is_killed_while_it_fetches_then_it_goes_on_with_the_files_it_lacks(
    start_node: StartNode,
) -> None:
    processes, region = flushed_region(start_node, **SLOW)
    region.fill(8)
    region.add_learner("dn-2")
    node = region.nodes["dn-2"]
    until_it_fetches(node, region.region)
    progress = fetch_of(node, region.region)
    assert progress is None or 0 < progress["bytes"] <= progress["bytes_total"]

    processes["dn-2"].kill()
    processes["dn-2"].start()
    node.url = processes["dn-2"].url
    heard(node.metasrv, processes["dn-2"])
    region.version += 1
    region.tell("dn-1", "dn-2")
    region.write(1)

    until(region.leader, lambda: has_joined(region, "dn-2"))
    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.row_count == 8 * ROWS + 1


def test_given_a_leader_that_is_killed_while_it_is_fetched_from_then_the_copy_goes_on_at_the_next(
    start_node: StartNode,
) -> None:
    processes, region = flushed_region(start_node, **SLOW)
    region.fill(8)
    region.add_learner("dn-2")
    node = region.nodes["dn-2"]
    until_it_fetches(node, region.region)

    processes["dn-1"].kill()
    processes["dn-1"].start()
    region.nodes["dn-1"].url = processes["dn-1"].url
    heard(node.metasrv, processes["dn-1"])
    region.epoch, region.version = 2, region.version + 1
    region.tell("dn-1", "dn-2")
    region.write(1)
    region.fill(1)

    until(region.leader, lambda: has_joined(region, "dn-2"))
    region.write(2)
    region.change(dn_2="in-sync")
    lost(region, processes["dn-1"])
    region.promote("dn-2")
    assert region.row_count == 9 * ROWS + 2
