"""When a call of a region is made again, and when its error is final."""

import asyncio

import pytest

from metasrv_base.errors import Conflict, MetaError, NotFound, NotLeader, Refused, Unavailable
from metasrv_base.rng import SystemRng
from metasrv_base.rows.retry import REGION_BACKOFF, RegionAttempts, may_send_again

MOVED = NotLeader()


async def pauses(left_s: float, error: MetaError, attempts_max: int) -> list[float]:
    """Returns the pauses before each next attempt, in seconds, if every attempt fails at once."""
    until = asyncio.get_running_loop().time() + left_s
    attempts, taken = RegionAttempts(until, SystemRng()), list[float]()
    while len(taken) < attempts_max:
        pause_s = attempts.pause_s(error, may_send_again)
        if pause_s is None:
            break
        taken.append(pause_s)
    return taken


async def test_given_time_when_a_region_has_moved_then_pauses_grow_up_to_their_bound() -> None:
    taken = await pauses(3_600.0, MOVED, 40)

    assert len(taken) == 40
    assert max(taken) <= REGION_BACKOFF.max_ms / 1000
    assert max(taken[:3]) < max(taken[20:])


async def test_given_less_time_than_a_pause_when_a_region_has_moved_then_it_is_final() -> None:
    assert await pauses(0.0, MOVED, 1) == []


@pytest.mark.parametrize(
    "error",
    [
        Refused("invalid-request"),
        Conflict("already-exists"),
        NotFound("table-not-found"),
        Unavailable("region-lost"),
    ],
)
async def test_given_an_error_that_no_attempt_mends_then_it_is_final(error: MetaError) -> None:
    assert await pauses(3_600.0, error, 1) == []
