"""Numbers of copies of tables and placements, and the minimum of regions that grow. Pure."""

import pytest

from keys.model.tables import CopyRole, RegionCopy, RegionRoute, TableInfo
from keys.value import decode, encode
from procedures.quorum import (
    CopyNumbers,
    changed_regions,
    follows,
    held_back,
    min_in_sync,
    minimum_of,
    needs_reason,
    own_numbers,
    with_numbers,
)
from tests.keys.model.copied_routes import FIRST
from tests.keys.model.samples import INFO

ALONE = FIRST.with_copies(())
LEFT = RegionCopy(node="dn-2", root="/dn-2/r", role=CopyRole.LEARNER, eligible_epoch=FIRST.epoch)
USUAL = CopyNumbers()


def in_sync(count: int) -> RegionRoute:
    copies = (
        RegionCopy(node=f"dn-{number}", root=f"/dn-{number}/r", role=CopyRole.IN_SYNC)
        for number in range(2, count + 1)
    )
    return ALONE.with_copies(tuple(copies))


def table(replicas: int | None, minimum: int | None = None) -> TableInfo:
    return with_numbers(INFO, replicas, minimum, USUAL)


@pytest.mark.parametrize(("replicas", "minimum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)], ids=str)
def test_given_no_minimum_then_a_majority_of_the_copies_counts(replicas: int, minimum: int) -> None:
    assert min_in_sync(table(replicas)) == minimum


def test_given_the_default_then_nothing_of_it_is_stored() -> None:
    usual, majority, lower = table(None), table(3, 2), table(3, 1)

    assert b"min_in_sync" not in encode(usual)
    assert usual.format == INFO.format
    assert majority == table(3)
    assert lower.min_in_sync == 1
    assert decode(TableInfo, encode(lower), key="k") == lower


@pytest.mark.parametrize(
    ("replicas", "minimum", "placed", "expected"),
    [
        (None, None, CopyNumbers(3), CopyNumbers(3)),
        (None, None, CopyNumbers(3, 1), CopyNumbers(3, 1)),
        (None, 2, CopyNumbers(3, 1), CopyNumbers(3, 2)),
        (5, None, CopyNumbers(3, 1), CopyNumbers(5)),
        (2, 1, CopyNumbers(3), CopyNumbers(2, 1)),
    ],
    ids=str,
)
def test_given_a_placement_then_what_the_table_does_not_name_follows_it(
    replicas: int | None, minimum: int | None, placed: CopyNumbers, expected: CopyNumbers
) -> None:
    numbered = with_numbers(INFO, replicas, minimum, placed)

    assert CopyNumbers(numbered.replicas, numbered.min_in_sync) == expected
    assert own_numbers(numbered) == (replicas, minimum)
    assert follows(numbered, placed)
    assert follows(numbered, CopyNumbers(7)) is (replicas is not None)


def test_given_rows_in_one_process_then_one_copy_whatever_the_placement_says() -> None:
    volatile = INFO.model_copy(update={"engine": "memory"})

    assert with_numbers(volatile, None, None, CopyNumbers(3)).replicas == 1
    assert follows(volatile, CopyNumbers(3))


def test_given_more_copies_then_writes_go_on_with_the_minimum_from_before() -> None:
    """Nobody else is in sync yet."""
    grown = held_back(table(1), table(3), ALONE)

    assert minimum_of(table(3), grown) == 1
    assert grown.copies_version == ALONE.copies_version + 1


def test_given_more_copies_of_a_region_with_enough_then_the_new_minimum_counts_at_once() -> None:
    grown = held_back(table(3), table(5), in_sync(3))

    assert grown.min_in_sync is None
    assert minimum_of(table(5), grown) == 3


def test_given_a_minimum_that_is_raised_alone_then_it_counts_at_once() -> None:
    raised = held_back(table(3, 1), table(3), ALONE)

    assert minimum_of(table(3), raised) == 2
    assert raised.copies_version == ALONE.copies_version + 1


def test_given_a_region_that_grows_when_fewer_copies_are_asked_for_then_it_is_still_eased() -> None:
    growing = held_back(table(1), table(3), ALONE)

    fewer = held_back(table(3), table(2), growing)
    one = held_back(table(3), table(1), growing)

    assert minimum_of(table(2), fewer) == 1
    assert one.min_in_sync is None


def test_given_the_same_numbers_then_no_region_is_told() -> None:
    assert changed_regions(table(3), table(3), (ALONE, in_sync(3))) == ()


def test_given_the_same_number_once_more_when_a_region_grows_then_it_is_still_eased() -> None:
    growing = held_back(table(1), table(3), ALONE)

    assert changed_regions(table(3), table(3), (growing,)) == ()


def test_given_fewer_copies_with_the_same_minimum_then_regions_are_looked_at_again() -> None:
    """The keeper of copies looks at a region again when the version of its copies rises."""
    (changed,) = changed_regions(table(3), table(2), (in_sync(3),))

    assert changed.copies_version == in_sync(3).copies_version + 1


@pytest.mark.parametrize(
    ("before", "after", "needed"),
    [
        (CopyNumbers(3), CopyNumbers(3, 1), True),
        (CopyNumbers(3, 1), CopyNumbers(3), False),
        (CopyNumbers(3), CopyNumbers(1), False),
        (CopyNumbers(3, 1), CopyNumbers(5, 1), False),
        (CopyNumbers(3, 3), CopyNumbers(3), False),
        (CopyNumbers(5), CopyNumbers(5, 2), True),
    ],
    ids=str,
)
def test_given_a_lower_minimum_then_a_reason_is_needed_below_a_majority(
    before: CopyNumbers, after: CopyNumbers, needed: bool
) -> None:
    assert needs_reason(before, after) is needed


def test_given_a_minimum_that_falls_to_what_is_in_sync_then_no_copy_may_lead_any_more() -> None:
    region = ALONE.with_copies((LEFT,))

    lowered = held_back(table(2), table(2, 1), region)
    raised = held_back(table(2), table(5, 4), region)

    assert region.eligible == (LEFT,)
    assert lowered.eligible == ()
    assert lowered.copies_version > region.copies_version
    assert raised.eligible == (LEFT,)
