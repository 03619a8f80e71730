"""A leader and a datanode stopped beyond their leases, then woken: nothing they then do counts."""

from pathlib import Path

import pytest

from tests.process.harness.node_outages import node_stopped
from tests.process.harness.pauses import leader_stopped

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]


async def test_given_a_stopped_leader_when_it_wakes_then_nothing_it_does_counts(
    tmp_path: Path,
) -> None:
    seen = await leader_stopped(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_a_stopped_datanode_when_it_wakes_then_it_acknowledges_nothing(
    tmp_path: Path,
) -> None:
    seen = await node_stopped(tmp_path)

    print(seen)
    assert seen.wrong == ()
