"""Regions with copies under a real metasrv, whose disks are slow, full, or lose their files."""

from pathlib import Path

import pytest

from tests.process.harness.copies.copy_disks import copies_on_bad_disks

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.timeout(1_200)]


async def test_given_disks_that_are_slow_full_or_lose_files_then_no_row_is_lost_and_copies_equal(
    tmp_path: Path,
) -> None:
    seen = await copies_on_bad_disks(tmp_path)

    print(seen)
    assert seen.wrong == ()
