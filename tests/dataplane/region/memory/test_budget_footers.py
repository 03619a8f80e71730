"""Flushes and merges reserve the footer that they write: an entry for each column of a group."""

import pytest

from dataplane.region.engine.region import Region
from dataplane.region.files.file_reader import FileReader
from dataplane.region.files.file_writer import writing_bytes
from dataplane.region.place import RegionPlace
from tests.dataplane.region.rig import SPEC, place, write
from tests.dataplane.region.watched_budget import WatchedBudget

FILES = 4
"""Files of one size that are merged."""
ROWS = 40


@pytest.mark.parametrize("row_bytes", [8, 30_000, 300_000])
@pytest.mark.slow
def test_given_many_row_groups_when_flushed_and_merged_then_the_footer_is_reserved(
    row_bytes: int,
) -> None:
    there, budget = place(), WatchedBudget()
    region = Region.create(RegionPlace(there.disk, there.root, there.clock, budget=budget), SPEC, 1)
    for file in range(FILES):
        keys = [b"%03d" % at for at in range(file * ROWS, (file + 1) * ROWS)]
        write(region, f"s-{file}", dict.fromkeys(keys, (1, "x" * row_bytes)))
        region.maintenance.flush()
        (_, groups) = _last_file(region)
        assert budget.flushed[-1] >= writing_bytes(ROWS, len(SPEC.columns), groups)

    assert region.maintenance.compact() is not None

    rows, groups = _last_file(region)
    assert rows == FILES * ROWS
    assert budget.merged[-1] >= writing_bytes(rows, len(SPEC.columns), groups)


def _last_file(region: Region) -> tuple[int, int]:
    """Returns the rows and the row groups of the newest file."""
    entry = region.manifest.files[-1]
    return entry.rows, FileReader(region.place.files, entry).decoded.row_groups
