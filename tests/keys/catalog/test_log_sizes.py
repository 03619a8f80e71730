"""Sizes of updates are counted once, and between any two versions."""

from keys.catalog.log_sizes import LogSizes


def test_given_updates_when_counted_then_the_bytes_between_two_versions_are_told() -> None:
    sizes = LogSizes()
    for version in range(1, 6):
        sizes.note(version, 10 * version)
    sizes.note(3, 1_000)

    assert sizes.between(0, 5) == 150
    assert sizes.between(2, 4) == 70
    assert sizes.between(5, 9) == 0


def test_given_a_snapshot_when_what_is_below_is_forgotten_then_counting_goes_on_above() -> None:
    sizes = LogSizes()
    for version in range(1, 6):
        sizes.note(version, 10)

    sizes.forget(3)
    sizes.forget(2)
    sizes.note(6, 7)

    assert (sizes.newest, sizes.between(0, 6), sizes.between(4, 6)) == (6, 27, 17)


def test_given_a_jump_when_an_update_comes_behind_a_gap_then_counting_begins_anew() -> None:
    sizes = LogSizes()
    sizes.note(1, 10)

    sizes.note(40, 5)
    sizes.forget(60)
    sizes.note(61, 2)

    assert (sizes.newest, sizes.between(0, 61)) == (61, 2)
