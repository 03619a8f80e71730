"""Regions with copies under a real metasrv: nodes lost with their disks, a leader that stands
still, and one that is drained. Settings are the defaults."""

from pathlib import Path

import pytest

from tests.process.harness.copies.altered_copies import two_copies_altered
from tests.process.harness.copies.copy_outages import copies_killed, stopped_leader_read
from tests.process.harness.copies.drained_copies import (
    dropped_tables_drained,
    leader_drained,
    only_copies_drained,
)
from tests.process.harness.copies.filled_copies import copies_filled
from tests.process.harness.copies.preferred_copies import leaders_in_zones

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


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


async def test_given_two_copies_when_a_disk_is_lost_and_the_numbers_change_then_no_row_is_lost(
    tmp_path: Path,
) -> None:
    seen = await two_copies_altered(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_writers_when_a_node_that_leads_is_drained_then_no_write_is_refused(
    tmp_path: Path,
) -> None:
    seen = await leader_drained(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_writers_when_a_node_with_only_copies_is_drained_then_no_write_is_refused(
    tmp_path: Path,
) -> None:
    seen = await only_copies_drained(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_dropped_tables_when_their_node_is_drained_and_gone_then_undrops_find_all_rows(
    tmp_path: Path,
) -> None:
    seen = await dropped_tables_drained(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_rows_of_files_and_an_index_when_a_leaders_disk_is_lost_then_copies_have_them(
    tmp_path: Path,
) -> None:
    seen = await copies_filled(tmp_path)

    print(seen)
    assert seen.wrong == ()


async def test_given_preferred_zones_when_nodes_die_and_they_change_then_leaders_follow_them(
    tmp_path: Path,
) -> None:
    seen = await leaders_in_zones(tmp_path)

    print(seen)
    assert seen.wrong == ()
