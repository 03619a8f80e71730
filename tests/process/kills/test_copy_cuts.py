"""Regions with copies under a real metasrv, and a network that is cut between their nodes."""

from pathlib import Path

import pytest

from tests.process.harness.copies.copy_cuts import copies_cut

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]


async def test_given_nodes_that_cannot_reach_each_other_then_no_row_is_lost_and_no_read_is_stale(
    tmp_path: Path,
) -> None:
    seen = await copies_cut(tmp_path)

    print(seen)
    assert seen.wrong == ()
