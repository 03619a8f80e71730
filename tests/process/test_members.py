"""Three members of each kind, one fault after another; for longer: scripts/chaos.py."""

from pathlib import Path

import pytest

from tests.process.faults import FAULTS
from tests.process.members import Plan, members_fail

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

HOLD_MS = 3_000  # the leases last two seconds


async def test_given_three_of_each_when_one_after_another_fails_then_every_promise_holds(
    tmp_path: Path,
) -> None:
    seen = await members_fail(tmp_path, Plan(tuple(FAULTS), HOLD_MS))

    print(seen)
    assert seen.wrong == ()
