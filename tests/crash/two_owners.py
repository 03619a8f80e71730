"""Lives of a scenario in which two servers own one procedure, and the seconds in which they do."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from tests.crash.enumeration import BY_NAME, Harness, life
from tests.crash.second_owner import SecondOwner

SOUND = Harness()


BEHIND_MAX = 1  # transactions of others that come between


def by_two(name: str, second: SecondOwner, harness: Harness = SOUND) -> list[str]:
    """Returns the faults of a life in which *second* sends a step again."""
    own = replace(second)
    run = life(BY_NAME[name], None, replace(harness, make_committer=own.makes))
    return [*run.wrong, *["a second owner's step was taken"] * bool(own.was_taken)]


@cache
def steps_of(name: str) -> int:
    """Transactions of steps in a life without faults."""
    counter = SecondOwner()
    assert life(BY_NAME[name], None, Harness(make_committer=counter.makes)).wrong == ()
    return counter.sent


def seconds_of(name: str) -> Iterator[SecondOwner]:
    """One that sends again at once or behind the next, for each transaction of a step."""
    for at in range(steps_of(name)):
        yield from (SecondOwner(at, behind) for behind in range(BEHIND_MAX + 1))
