"""The allocator that holds a node's rows."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

ASKED = (
    "import dataplane.datanode.main, pyarrow as pa; print(pa.default_memory_pool().backend_name)"
)


def test_given_a_datanode_when_imported_then_arrow_came_after_the_choice_of_its_allocator() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED], capture_output=True, text=True, check=True, env={}
    )

    assert done.stdout == "system\n"
