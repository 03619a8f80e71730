"""Where a restored region is, by the folders that nodes told of."""

from collections.abc import Callable, Collection, Sequence

import pytest

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState
from metasrv.restore.placement import (
    HeldRoot,
    RegionFate,
    RestoredPlacement,
    is_in_doubt,
    placement_of,
)
from metasrv_base.wire.node.adoption import FoundRoot

ID = str(1024 << 32)
ROUTE = RegionRoute(
    region_id=ID,
    leader="dn-1",
    epoch=3,
    state=RegionState.LOST,
    root="/dn-1/regions/r-3",
    announced=True,
    unverified=True,
)


def held(node: str, epoch: int, **more: object) -> HeldRoot:
    """A root of its own leader, as it serves at *epoch*."""
    path = f"/{node}/regions/r-{epoch}"
    root = FoundRoot(
        region_id=ID,
        root=path,
        fence_epoch=epoch,
        fence_opening=1,
        opener=path,
        manifest_epoch=epoch,
        manifest_opening=1,
    )
    return HeldRoot(node, root.model_copy(update=more))


def taken_over(node: str, epoch: int, by: HeldRoot) -> HeldRoot:
    """A root that a later leader has fenced, and borrows."""
    fence = {"fence_epoch": by.root.fence_epoch, "opener": by.root.root}
    return held(node, epoch, **fence)


def test_given_the_root_of_the_route_when_placed_then_it_opens_above_every_fence() -> None:
    placed = placement_of(ROUTE, [held("dn-1", 3)], ())

    assert placed.fate is RegionFate.KEPT
    assert (placed.region.epoch, placed.region.state) == (4, RegionState.OPEN)
    assert (placed.region.root, placed.region.unverified) == (ROUTE.root, False)


def test_given_two_nodes_that_hold_it_when_placed_then_the_higher_fence_wins() -> None:
    newer = held("dn-2", 5)

    placed = placement_of(ROUTE, [taken_over("dn-1", 3, newer), newer], ())

    assert placed.fate is RegionFate.MOVED
    assert (placed.region.leader, placed.region.root) == ("dn-2", newer.root.root)
    assert placed.region.epoch == 6
    assert "dn-2" in placed.reason


def test_given_files_that_another_leader_took_over_and_nobody_has_then_they_are_not_opened() -> (
    None
):
    old = taken_over("dn-1", 3, held("dn-9", 4))

    placed = placement_of(ROUTE, [old], ())

    assert placed.fate is RegionFate.MISSING
    assert placed.region == ROUTE
    assert "/dn-9/regions/r-4" in placed.reason


def test_given_a_leader_that_died_before_it_served_then_the_files_before_it_open() -> None:
    dead = held("dn-2", 4, manifest_epoch=None, manifest_opening=0)

    placed = placement_of(ROUTE, [taken_over("dn-1", 3, dead), dead], ())

    assert placed.fate is RegionFate.KEPT
    assert placed.region.epoch == 5


def test_given_a_fence_that_was_not_finished_then_nobody_served_behind_it() -> None:
    torn = held("dn-1", 3, fence_epoch=4, opener=None)

    placed = placement_of(ROUTE, [torn], ())

    assert (placed.fate, placed.region.epoch) == (RegionFate.KEPT, 5)


def test_given_a_region_that_was_dropped_or_is_nowhere_then_it_stays_lost() -> None:
    dropped = placement_of(ROUTE, [held("dn-2", 9)], ["dn-1"])
    nowhere = placement_of(ROUTE, [], ())
    empty = placement_of(ROUTE, [held("dn-1", 3, manifest_epoch=None)], ())

    assert (dropped.fate, dropped.region) == (RegionFate.DROPPED, ROUTE)
    assert (nowhere.fate, nowhere.region) == (RegionFate.MISSING, ROUTE)
    assert (empty.fate, empty.region) == (RegionFate.MISSING, ROUTE)


def test_given_a_newer_folder_that_cannot_be_read_then_an_older_one_is_not_opened() -> None:
    broken = held("dn-2", 5, manifest_epoch=None, error="damaged")

    placed = placement_of(ROUTE, [held("dn-1", 3), broken], ())

    assert placed.fate is RegionFate.UNREADABLE
    assert placed.region == ROUTE
    assert "damaged" in placed.reason


def test_given_a_folder_whose_fences_are_not_known_then_no_other_one_is_opened() -> None:
    """It may be the newest."""
    broken = HeldRoot("dn-2", FoundRoot(region_id=ID, root="/dn-2/regions/r-1", error="EIO"))

    placed = placement_of(ROUTE, [held("dn-1", 3), broken], ())
    alone = placement_of(ROUTE, [broken], ())

    assert (placed.fate, placed.region) == (RegionFate.UNREADABLE, ROUTE)
    assert (alone.fate, alone.region) == (RegionFate.UNREADABLE, ROUTE)


def test_given_roots_that_it_still_reads_when_placed_then_the_route_has_them() -> None:
    newer = held("dn-2", 5, borrows=["/dn-1/regions/r-3"])

    placed = placement_of(ROUTE, [taken_over("dn-1", 3, newer), newer], ())

    assert placed.region.borrows == ("/dn-1/regions/r-3",)


COPIED = ROUTE.model_copy(
    update={
        "copies": (
            RegionCopy(node="dn-2", root="/dn-2/regions/r-3", role=CopyRole.IN_SYNC),
            RegionCopy(node="dn-3", root="/dn-3/regions/r-3", role=CopyRole.LEARNER),
        ),
        "copies_version": 4,
    }
)


def copy(node: str, sequence: int | None, *, epoch: int = 3, opening: int = 1) -> HeldRoot:
    """A folder of a copy whose log ends with that record; None: it was not asked."""
    ends = {} if sequence is None else {"log_epoch": epoch, "log_sequence": sequence}
    return held(node, epoch, fence_opening=opening, manifest_opening=opening, **ends)


def test_given_copies_when_placed_then_the_one_with_the_last_record_leads_alone() -> None:
    """The others may have left the set before it acknowledged a row; openings tell nothing."""
    roots = [copy("dn-1", 7), copy("dn-2", 9), copy("dn-3", 8, opening=5)]

    placed = placement_of(COPIED, roots, ())

    assert placed.fate is RegionFate.MOVED
    assert (placed.region.leader, placed.region.root) == ("dn-2", "/dn-2/regions/r-3")
    assert (placed.region.epoch, placed.region.state) == (4, RegionState.OPEN)
    assert placed.region.copies == ()
    assert placed.region.copies_version > COPIED.copies_version + 1_000, "nodes may know later ones"
    assert placement_of(ROUTE, [held("dn-1", 3)], ()).region.copies_version == 0


def test_given_copies_that_are_equal_when_placed_then_the_leader_of_the_backup_stays() -> None:
    roots = [copy("dn-3", 9, opening=5), copy("dn-2", 9, opening=2), copy("dn-1", 9)]

    assert placement_of(COPIED, roots, ()).fate is RegionFate.KEPT


def test_given_a_leader_of_a_later_epoch_when_placed_then_records_of_before_do_not_count() -> None:
    """They were not acknowledged: the next leader had all that were."""
    later = copy("dn-2", 1, epoch=5)

    placed = placement_of(COPIED, [copy("dn-1", 99), later], ())

    assert (placed.region.root, placed.region.epoch) == (later.root.root, 6)


def test_given_a_damaged_log_of_a_copy_when_placed_then_none_is_opened() -> None:
    broken = held("dn-2", 3, manifest_epoch=None, manifest_opening=0, error="damaged")

    placed = placement_of(COPIED, [copy("dn-1", 7), broken], ())

    assert placed.fate is RegionFate.UNREADABLE


def test_given_folders_when_copies_may_differ_then_they_are_in_doubt_until_all_have_told() -> None:
    assert is_in_doubt([copy("dn-1", 7), copy("dn-2", None)])
    assert not is_in_doubt([copy("dn-1", 7), copy("dn-2", 9)])
    assert not is_in_doubt([held("dn-1", 3), held("dn-2", 5)]), "one is newer"
    assert not is_in_doubt([held("dn-1", 3), held("dn-2", 3, manifest_epoch=None)])
    assert not is_in_doubt([])


Place = Callable[[RegionRoute, Sequence[HeldRoot], Collection[str]], RestoredPlacement]


def misplaced(place: Place) -> set[str]:
    """The rules that *place* breaks."""
    newer, absent = held("dn-2", 5), held("dn-9", 5)
    damaged = held("dn-2", 5, manifest_epoch=None, error="damaged")
    moved = place(ROUTE, [taken_over("dn-1", 3, newer), newer], ())
    away = place(ROUTE, [taken_over("dn-1", 3, absent)], ())
    raised = place(ROUTE, [held("dn-1", 3, fence_epoch=7, opener=None)], ())
    last = place(COPIED, [copy("dn-1", 7, opening=4), copy("dn-2", 9)], ())
    rules = {
        "newest": moved.region.root == newer.root.root,
        "absent": away.region == ROUTE,
        "above": raised.region.epoch == 8,
        "tombstone": place(ROUTE, [held("dn-1", 3)], ["dn-1"]).region == ROUTE,
        "last record": last.region.leader == "dn-2",
        "damaged": place(ROUTE, [held("dn-1", 3), damaged], ()).region == ROUTE,
    }
    return {name for name, holds in rules.items() if not holds}


def test_given_no_bug_when_regions_are_placed_then_every_rule_holds() -> None:
    assert misplaced(placement_of) == set()


def blind(**facts: object) -> Place:
    """A placement that takes *facts* for what every folder says."""

    def place(
        region: RegionRoute, roots: Sequence[HeldRoot], dropped_by: Collection[str]
    ) -> RestoredPlacement:
        changed = [HeldRoot(each.node, each.root.model_copy(update=facts)) for each in roots]
        return placement_of(region, changed, dropped_by)

    return place


PLANTED: dict[str, tuple[Place, set[str]]] = {
    "a region that opens where the backup has it": (
        lambda region, roots, by: placement_of(region, roots[:1], by),
        {"newest", "damaged"},
    ),
    "a takeover that is not looked at": (blind(opener=None), {"absent"}),
    "an epoch that a fence has passed": (blind(fence_epoch=3, opener=None), {"above", "absent"}),
    "a tombstone that is not looked at": (
        lambda region, roots, by: placement_of(region, roots, ()),
        {"tombstone"},
    ),
    "copies told apart by their openings": (
        blind(log_epoch=None, log_sequence=None),
        {"last record"},
    ),
    "a damaged folder that is passed over": (blind(error=None), {"damaged"}),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_regions_are_placed_then_a_rule_is_broken(bug: str) -> None:
    place, broken = PLANTED[bug]

    assert misplaced(place) >= broken
