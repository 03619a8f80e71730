"""The next part of filling an index, region by region; and what a record keeps of it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.tables import RegionRoute, RegionState
from procedures.elements.reorg import (
    OFFENDERS_CHARS_MAX,
    OFFENDERS_MAX,
    IndexReorg,
    Offender,
    ReorgStage,
    Runs,
    Taken,
    has,
    in_turn,
    joined,
    pending,
    stage_of,
    surveyed,
    with_made,
    with_taken,
)
from tests.procedures.elements.reorgs import made

REGIONS_MAX = 1_024
RECORD_BYTES_MAX = 2_048


def region(number: int) -> RegionRoute:
    return RegionRoute(
        region_id=str((7 << 32) + number),
        leader="dn-1",
        epoch=1,
        state=RegionState.OPEN,
        root=f"/r{number}",
        announced=True,
    )


def numbers(reorg: IndexReorg, count: int) -> list[int]:
    return [one.number for one in pending(reorg, [region(n) for n in range(count)])]


@given(st.lists(st.integers(0, 40)))
def test_given_numbers_in_any_order_then_their_runs_hold_them_and_no_others(
    found: list[int],
) -> None:
    runs: Runs = ()
    for number in found:
        runs = joined(runs, number)

    assert [number for number in range(41) if has(runs, number)] == sorted(set(found))
    assert all(first <= last for first, last in runs)
    assert all(run[1] + 1 < later[0] for run, later in pairwise(runs))


@pytest.mark.case("catalog 94")
def test_given_a_region_then_it_is_pending_then_read_then_filled() -> None:
    begun = IndexReorg(index=3)
    read = with_made(begun, [made(1)], 1_000)
    taken = with_taken(read, [Taken(made(1))])

    assert [stage_of(one, 1) for one in (begun, read, taken)] == [
        ReorgStage.PENDING,
        ReorgStage.READ,
        ReorgStage.FILLED,
    ]
    assert [numbers(one, 3) for one in (begun, read, taken)] == [[0, 1, 2], [0, 2], [0, 2]]
    assert (taken.rows, taken.entries, taken.bytes, taken.rounds) == (10, 10, 100, 1)


def test_given_regions_without_rows_when_surveyed_then_only_the_others_are_read() -> None:
    regions = [region(number) for number in range(4)]
    rows = {regions[1].region_id: 20, regions[3].region_id: 30}

    reorg = surveyed(3, regions, rows)

    assert (numbers(reorg, 4), reorg.rows_total, reorg.has_marks) == ([1, 3], 50, True)
    assert not surveyed(3, regions, {}).has_marks


def test_given_files_that_a_region_does_not_take_then_it_is_read_again_under_another_name() -> None:
    read = with_made(IndexReorg(index=3), [made(0), made(1)], 1_000)

    after = with_taken(read, [Taken(made(1))])

    assert numbers(after, 2) == [0]
    assert after.made == ()
    assert after.rounds == 1


def test_given_rounds_of_which_nothing_is_taken_then_they_are_counted_until_something_is() -> None:
    reorg = IndexReorg(index=3)
    for _ in range(3):
        reorg = with_taken(with_made(reorg, [made(0)], 1_000), [])
    assert reorg.refusals == 3

    assert with_taken(with_made(reorg, [made(0)], 1_000), [Taken(made(0))]).refusals == 0


def test_given_regions_that_take_nothing_then_the_others_come_before_them_in_the_next_round() -> (
    None
):
    regions = [region(number) for number in range(5)]
    reorg, read = IndexReorg(index=3), []
    for _ in range(3):
        waiting = in_turn(reorg, pending(reorg, regions), 2)
        round_ = [made(one.number) for one in waiting[:2]]
        read.append([one.region for one in round_])
        taken = [Taken(one) for one in round_ if one.region > 1]
        reorg = with_taken(with_made(reorg, round_, 1_000), taken)

    assert read == [[0, 1], [2, 3], [1, 4]]
    assert in_turn(reorg, (), 2) == ()


def test_given_duplicates_then_all_are_counted_and_the_first_kept() -> None:
    found = tuple(Offender(values=(n,), rows=((1,), (2,))) for n in range(OFFENDERS_MAX))
    reorg = with_made(IndexReorg(index=3), [made(0), made(1)], 1_000)

    after = with_taken(reorg, [Taken(made(0), 500, found), Taken(made(1), 7, found[:7])])

    assert after.duplicates == 507
    assert {stage_of(after, number) for number in (0, 1)} == {ReorgStage.VIOLATED}
    assert numbers(after, 3) == [2]
    assert after.offenders == found


def test_given_duplicates_with_long_keys_then_as_many_are_kept_as_a_record_has_room_for() -> None:
    rows = tuple((f"{n}{'k' * 1_000}",) for n in range(2))
    found = tuple(Offender(values=(n,), rows=rows) for n in range(OFFENDERS_MAX))
    reorg = with_made(IndexReorg(index=3), [made(0)], 1_000)

    after = with_taken(reorg, [Taken(made(0), 500, found)])

    assert after.duplicates == 500
    assert 0 < len(after.offenders) < OFFENDERS_MAX
    assert after.offenders == found[: len(after.offenders)]
    assert len(after.model_dump_json()) < 2 * OFFENDERS_CHARS_MAX


def test_given_a_table_of_very_many_regions_when_half_is_filled_then_its_record_is_small() -> None:
    reorg = IndexReorg(index=3)
    for number in range(REGIONS_MAX // 2):
        reorg = with_taken(with_made(reorg, [made(number)], 1_000), [Taken(made(number))])

    assert len(reorg.model_dump_json()) < RECORD_BYTES_MAX
    assert len(numbers(reorg, REGIONS_MAX)) == REGIONS_MAX // 2
