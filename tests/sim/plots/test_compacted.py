"""An operator compacts etcd under servers that load."""

from collections import Counter

import pytest

from tests.sim.checks.follow_invariants import JUMPED
from tests.sim.length import Life
from tests.sim.plots.compacted import AGAIN, COMPACTED, FAILED, GAVE_UP
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIVES = [Life(seed, COMPACTED) for seed in (1, 1181)]
"""The second found that a late copy of a statement was applied to a table truncated meanwhile."""


def test_given_a_store_that_is_compacted_under_servers_then_they_begin_again_or_end_honestly(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert [one.violations for one in outcomes] == [()] * len(LIVES)
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert total[AGAIN] >= 1, total
    assert total[GAVE_UP] == total[f"logged: {FAILED}"] >= 1, total
    assert total[JUMPED] >= total[AGAIN], total
