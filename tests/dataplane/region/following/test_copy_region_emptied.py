"""A region with copies that begins anew, empty: no statement of before is applied to it again,
whichever copy leads it next (docs/decisions/0333, 0388)."""

import pytest

from dataplane.region.copies.history import LogHistory
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following.copy_region import CopyRegion, StreamedRecords
from dataplane.region.following.leading import lead, lead_new
from metasrv_base.errors import Conflict
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, C, contents, order, place, write
from tests.fakes.clock import FakeClock

D = "/disk/d/region"
OLD = {b"old": (1, None)}


@pytest.fixture
def disk() -> MemoryDisk:
    """A is led, and B has its row; both are left behind."""
    disk = MemoryDisk(MemoryStore())
    region, copy = leader(disk, A), copy_at(disk, B)
    write(region, "s-1", OLD, sent_ms=FakeClock().wall_ms())
    copy.take(sent(region, 0, common=0))
    copy.close()
    region.close()
    return disk


def test_given_an_emptied_region_when_a_statement_comes_again_then_its_leader_knows_it(
    disk: MemoryDisk,
) -> None:
    region = lead_new(place(disk, C), SPEC, 2, [A]).region

    assert write(region, "s-1", OLD).repeated
    assert contents(region) == {}


def test_given_a_copy_in_sync_that_leads_the_emptied_region_then_it_knows_the_statement(
    disk: MemoryDisk,
) -> None:
    CopyRegion.create(place(disk, D), SPEC, 2, [B]).close()

    region = lead(place(disk, D), order(3)).region

    assert write(region, "s-1", OLD).repeated
    assert contents(region) == {}


def test_given_a_learner_that_leads_later_then_it_refuses_statements_of_before(
    disk: MemoryDisk,
) -> None:
    clock = FakeClock()
    CopyRegion.create(place(disk, D, clock), SPEC, 2, is_learner=True).close()
    sent_ms = clock.wall_ms() + 10_000
    clock.advance(10_000)
    region = lead(place(disk, D, clock), order(3)).region

    with pytest.raises(Conflict) as caught:
        write(region, "s-0", OLD, sent_ms=sent_ms)

    assert caught.value.code == "statement-too-old"
    clock.advance(1)
    write(region, "s-2", OLD, sent_ms=clock.wall_ms())


def test_given_a_learner_of_a_new_region_when_told_then_it_has_forgotten_nothing() -> None:
    clock, disk = FakeClock(), MemoryDisk(MemoryStore())
    sent_ms = clock.wall_ms()
    region = lead_new(place(disk, A, clock), SPEC, 1).region
    clock.advance(5)
    write(region, "s-1", OLD, sent_ms=sent_ms)
    learner = CopyRegion.create(place(disk, B, clock), SPEC, 1, is_learner=True)
    learner.take(sent(region, 0, common=1))
    learner.close()

    promoted = lead(place(disk, B, clock), order(2))
    promoted.count()

    assert write(promoted.region, "s-1", OLD).repeated
    assert not write(promoted.region, "s-2", {b"late": (2, None)}, sent_ms=sent_ms).repeated


def test_given_a_learner_of_an_emptied_region_when_told_then_it_refuses_what_its_log_may_lack(
    disk: MemoryDisk,
) -> None:
    clock = FakeClock()
    emptied = lead_new(place(disk, C, clock), SPEC, 2, [A]).region
    clock.advance(5)
    sent_ms = clock.wall_ms()
    clock.advance(5)
    learner = CopyRegion.create(place(disk, D, clock), SPEC, 2, is_learner=True)
    learner.take(sent(emptied, 0, common=0))
    learner.close()

    region = lead(place(disk, D, clock), order(3)).region

    with pytest.raises(Conflict) as caught:
        write(region, "s-1", OLD, sent_ms=FakeClock().wall_ms())
    assert (caught.value.code, caught.value.facts["is_forgotten"]) == ("statement-too-old", True)
    assert not write(region, "s-2", OLD, sent_ms=sent_ms).repeated


def test_given_a_copy_that_is_left_when_its_old_leader_sends_on_then_it_takes_nothing(
    disk: MemoryDisk,
) -> None:
    old = CopyRegion(place(disk, B), REGION_ID)
    CopyRegion.create(place(disk, D), SPEC, 2, [B])

    with pytest.raises(Conflict) as caught:
        old.take(StreamedRecords(1, LogHistory(), 0, ()))

    assert caught.value.code == "stale-epoch"
