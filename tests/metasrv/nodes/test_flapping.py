"""A node that dies and returns often is reported; one that restarts now and then is not."""

from metasrv.nodes.flapping import Returns

WINDOW_MS = 600_000


def times(*at_ms: int) -> list[bool]:
    returns = Returns()
    return [returns.came_back(at, window_ms=WINDOW_MS, limit=3) for at in at_ms]


def test_given_three_returns_in_the_window_then_it_flaps_at_the_third() -> None:
    assert times(0, 1_000, WINDOW_MS - 1) == [False, False, True]


def test_given_returns_that_are_far_apart_then_it_does_not_flap() -> None:
    assert times(0, 1_000, WINDOW_MS, 2 * WINDOW_MS) == [False] * 4


def test_given_a_node_that_goes_on_then_it_is_reported_at_every_third_return() -> None:
    assert times(*range(0, 7_000, 1_000)) == [False, False, True, False, False, True, False]
