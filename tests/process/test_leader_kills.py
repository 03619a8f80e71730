"""The leader killed every few seconds under six clients; the long form is in scripts/chaos.py."""

from pathlib import Path

import pytest

from tests.process.harness.leader_kills import Plan, leader_kills

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.mark.case("catalog 147")
async def test_given_six_clients_when_leaders_are_killed_then_what_was_acknowledged_holds(
    tmp_path: Path,
) -> None:
    report = await leader_kills(tmp_path, Plan(kills=2, every_s=2))

    print(report)
    assert report.wrong == [], "\n".join(report.wrong)
    assert report.terms > report.kills
