"""The node under test: our datanode as a child process, or any node at NODE_URL.

With NODE_URL the node must have been started as `NODE_ID` over `NODE_ROOT`, with a metasrv at
127.0.0.1:`NODE_METASRV_PORT`, where this suite listens.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import Node


@pytest.fixture(scope="session")
def metasrv() -> Iterator[FakeMetasrv]:
    with FakeMetasrv(port=int(os.environ.get("NODE_METASRV_PORT", "0"))) as fake:
        yield fake


@pytest.fixture(scope="session")
def started(metasrv: FakeMetasrv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    if url := os.environ.get("NODE_URL"):
        with Node(url, os.environ["NODE_ID"], os.environ["NODE_ROOT"], metasrv) as found:
            yield found
        return
    folder: Path = tmp_path_factory.mktemp("node")
    process = DatanodeProcess("dn-1", folder, metasrv.url).start()
    with Node(process.url, process.node_id, process.root, metasrv) as ours:
        yield ours
    process.close()


@pytest.fixture
def node(started: Node, metasrv: FakeMetasrv) -> Node:
    """Leases are granted to all again, whatever the last test took away."""
    metasrv.told.grants_all = True
    metasrv.wait_for(lambda: any(beat.node_id == started.node_id for beat in metasrv.heard))
    return started
