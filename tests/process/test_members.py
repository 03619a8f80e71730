"""Three members of each kind, one fault of the store after another; all: scripts/chaos.py.

Servers and nodes that are killed or stopped have tests of their own in this folder.
"""

from pathlib import Path

import pytest

from tests.process.harness.members import Plan, members_fail

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(1_200)]

HOLD_MS = 3_000  # the leases last two seconds
STORE = (
    "etcd-leader-killed",
    "etcd-leader-frozen",
    "etcd-leader-isolated",
    "etcd-no-space",
    "etcd-disk-full",
)


async def test_given_three_of_each_when_etcds_members_fail_in_turn_then_every_promise_holds(
    tmp_path: Path,
) -> None:
    seen = await members_fail(tmp_path, Plan(STORE, HOLD_MS))

    print(seen)
    assert seen.wrong == ()
