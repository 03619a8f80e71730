"""The set of a region changes by its leader's word, of one epoch and one version. Pure."""

import pytest

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState
from metasrv_base.errors import Conflict
from procedures.kinds.failover.change_copies import ChangeCopies, with_role
from tests.keys.model.copied_routes import FIRST, IN_SYNC, LEARNER

REGION = FIRST.with_copies((IN_SYNC, LEARNER))
MINIMUM = 2


def asked(copy: RegionCopy, change: str, **others: object) -> ChangeCopies:
    state = ChangeCopies(
        table_id=1024,
        name="t",
        region_id=REGION.region_id,
        change="join",
        node=copy.node,
        root=copy.root,
        epoch=REGION.epoch,
        version=REGION.copies_version,
    )
    return state.model_copy(update={"change": change, **others})


def roles(region: RegionRoute) -> dict[str, CopyRole]:
    return {copy.node: copy.role for copy in region.copies}


def test_given_a_learner_when_the_leader_asks_then_it_joins_and_the_version_rises() -> None:
    changed = with_role(REGION, asked(LEARNER, "join"), MINIMUM)

    assert roles(changed) == {"dn-2": CopyRole.IN_SYNC, "dn-3": CopyRole.IN_SYNC}
    assert changed.copies_version == REGION.copies_version + 1
    assert changed.epoch == REGION.epoch


def test_given_a_copy_of_the_set_when_the_leader_asks_then_it_leaves_and_stays_a_learner() -> None:
    changed = with_role(REGION, asked(IN_SYNC, "leave"), MINIMUM)

    assert roles(changed) == {"dn-2": CopyRole.LEARNER, "dn-3": CopyRole.LEARNER}


def test_given_a_request_that_is_sent_again_then_it_was_done_and_nothing_changes() -> None:
    request = asked(LEARNER, "join")
    once = with_role(REGION, request, MINIMUM)

    assert with_role(once, request, MINIMUM) is once


@pytest.mark.parametrize(
    ("others", "code"),
    [
        ({"epoch": REGION.epoch - 1}, "stale-epoch"),
        ({"epoch": REGION.epoch + 1}, "stale-epoch"),
        ({"version": REGION.copies_version - 1}, "version-mismatch"),
        ({"version": REGION.copies_version + 1}, "version-mismatch"),
        ({"root": "/dn-3/another"}, "version-mismatch"),
        ({"node": "dn-9"}, "version-mismatch"),
        ({"node": FIRST.leader, "root": FIRST.root}, "version-mismatch"),
    ],
)
def test_given_a_request_of_another_epoch_version_or_disk_then_refused(
    others: dict[str, object], code: str
) -> None:
    with pytest.raises(Conflict) as refused:
        with_role(REGION, asked(LEARNER, "join", **others), MINIMUM)

    assert refused.value.code == code


def test_given_a_copy_that_left_since_when_its_join_arrives_late_then_it_does_not_join() -> None:
    """Its leader does not require it any more."""
    request = asked(LEARNER, "join")
    joined = with_role(REGION, request, MINIMUM)
    left = with_role(joined, asked(LEARNER, "leave", version=joined.copies_version), MINIMUM)

    with pytest.raises(Conflict):
        with_role(left, request, MINIMUM)


def test_given_a_lower_minimum_when_enough_are_in_sync_then_it_ends_and_a_leader_is_told() -> None:
    """The leader that asked does not know the minimum of its table: one more version tells it."""
    growing = FIRST.with_copies((IN_SYNC, LEARNER)).with_minimum(1)
    request = asked(LEARNER, "join", version=growing.copies_version)

    once = with_role(growing, request, 3)
    early = with_role(growing, request, 4)

    assert once.min_in_sync is None
    assert once.copies_version == growing.copies_version + 2
    assert with_role(once, request, 3) is once
    assert (early.min_in_sync, early.copies_version) == (1, growing.copies_version + 1)


def eligible(region: RegionRoute) -> list[str]:
    return [copy.node for copy in region.eligible]


def test_given_a_set_below_the_minimum_then_the_copy_that_leaves_may_lead_until_it_is_reached() -> (
    None
):
    request = asked(IN_SYNC, "leave", eligible=True)

    left = with_role(REGION, request, MINIMUM)
    joined = with_role(left, asked(LEARNER, "join", version=left.copies_version), MINIMUM)

    assert eligible(left) == ["dn-2"]
    assert with_role(left, request, MINIMUM) is left, "sent again"
    assert eligible(joined) == []
    assert roles(joined) == {"dn-2": CopyRole.LEARNER, "dn-3": CopyRole.IN_SYNC}
    assert joined.copies_version == left.copies_version + 1


def test_given_a_join_below_the_minimum_then_the_other_copies_may_still_lead() -> None:
    of_three = with_role(REGION, asked(IN_SYNC, "leave", eligible=True), 3)

    joined = with_role(of_three, asked(LEARNER, "join", version=of_three.copies_version), 3)
    back = with_role(joined, asked(IN_SYNC, "join", version=joined.copies_version), 3)

    assert (eligible(of_three), eligible(joined), eligible(back)) == (["dn-2"], ["dn-2"], [])


def test_given_no_leader_word_or_enough_copies_or_a_region_that_opens_then_no_copy_may_lead() -> (
    None
):
    request = asked(IN_SYNC, "leave", eligible=True)
    opening = REGION.model_copy(update={"state": RegionState.OPENING})

    assert not eligible(with_role(REGION, asked(IN_SYNC, "leave"), MINIMUM))
    assert not eligible(with_role(REGION, request, 1))
    assert not eligible(with_role(opening, request, MINIMUM))


def test_given_another_epoch_then_no_copy_may_lead() -> None:
    left = with_role(REGION, asked(IN_SYNC, "leave", eligible=True), MINIMUM)

    stale = left.model_copy(update={"epoch": left.epoch + 1})
    moved = left.with_copies(left.copies, epoch=left.epoch + 1)

    assert eligible(stale) == []
    assert all(copy.eligible_epoch is None for copy in moved.copies)
    assert moved.copies_version == left.copies_version + 1
