"""A cluster is lost and restored from a backup beside what is left of it."""

from pathlib import Path

import pytest

from tests.process.drill.copied_drill import copies_drilled
from tests.process.drill.restore_drill import drilled

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]


async def test_given_a_lost_cluster_when_restored_and_adopted_then_every_row_is_there(
    tmp_path: Path,
) -> None:
    seen = await drilled(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_a_lost_cluster_with_copies_when_restored_then_every_acknowledged_row_is_there(
    tmp_path: Path,
) -> None:
    seen = await copies_drilled(tmp_path)

    print(seen)
    assert seen.wrong == ()
