"""Row versions: hybrid timestamps, wall milliseconds above and a counter below (P5).

They rise with every batch of a region, through every opening and whatever the clocks say.
"""

COUNTER_BITS = 20


def next_version(last: int, wall_ms: int) -> int:
    """The next row version: above `last`, and not before `wall_ms` if the clock is ahead of it."""
    return max(last + 1, version_of_ms(wall_ms))


def version_of_ms(wall_ms: int) -> int:
    """The lowest version of that millisecond."""
    return wall_ms << COUNTER_BITS


def wall_ms_of(version: int) -> int:
    return version >> COUNTER_BITS
