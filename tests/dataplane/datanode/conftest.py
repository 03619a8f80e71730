"""Datanodes as child processes, each over a folder of its own, and the metasrv they report to."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import Node

StartNode = Callable[..., tuple[DatanodeProcess, Node]]


@pytest.fixture
def metasrv() -> Iterator[FakeMetasrv]:
    with FakeMetasrv() as fake:
        yield fake


@pytest.fixture
def start_node(metasrv: FakeMetasrv, tmp_path: Path) -> Iterator[StartNode]:
    """A node that has been heard. Whatever is left of it ends with the test."""
    with ExitStack() as left:

        def start(node_id: str = "dn-1", **flags: str) -> tuple[DatanodeProcess, Node]:
            process = DatanodeProcess(node_id, tmp_path / node_id, metasrv.url, **flags)
            left.callback(process.close)
            process.start()
            heard(metasrv, process)
            node = left.enter_context(Node(process.url, node_id, process.root, metasrv))
            return process, node

        yield start


def heard(metasrv: FakeMetasrv, process: DatanodeProcess) -> None:
    """This incarnation of it."""
    metasrv.wait_for(lambda: any(beat.incarnation == process.incarnation for beat in metasrv.heard))
