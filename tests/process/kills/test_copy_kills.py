"""Regions with copies under a real metasrv: a node lost with its disk, and a leader that stands
still. Settings are the defaults."""

from pathlib import Path

import pytest

from metasrv.playground import plan
from tests.process.harness.copies.copy_outages import copies_killed, stopped_leader_read
from tests.process.harness.copies.copying_server import MODULE

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def with_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plan.MODULES, "metasrv", MODULE)


async def test_given_writers_when_a_node_is_killed_with_its_disk_then_no_acknowledged_row_is_lost(
    tmp_path: Path,
) -> None:
    seen = await copies_killed(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_readers_when_a_leader_is_stopped_and_another_leads_then_no_read_is_stale(
    tmp_path: Path,
) -> None:
    seen = await stopped_leader_read(tmp_path)

    print(seen)
    assert seen.wrong == ()
