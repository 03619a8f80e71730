"""Whether an error is worth another try, with the newest route, and one bounded schedule.

The same statement id makes sending again harmless: a region, and its successor, answer it once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Conflict, MetaError, NotFound, NotLeader, Unavailable, Unknown
from metasrv_base.rng import Rng

MOVED = frozenset({"stale-epoch", "epoch-mismatch", "schema-version-stale"})
JUDGED = frozenset({"already-exists", "version-mismatch"})
"""Codes of a region that compared a batch with its rows; it remembers no copy of the batch."""
SERVICE_BACKOFF = Backoff(first_ms=100, max_ms=2_000)
SENT_MS_MAX = 60_000
"""The longest time for which one of our programs sends a statement, unless it is told otherwise:
longer than a failover by detection takes (30 s). Regions remember statements for twice as long."""
REGION_BACKOFF = Backoff(first_ms=50, max_ms=1_000)
"""A failover takes seconds; asking every second for the new route is soon enough."""
ATTEMPT_S = 0.02
"""Seconds that a further attempt is to have: one that is cut off says less than the last answer."""


def may_send_again(error: BaseException) -> bool:
    """Whether to send again, to the region that the newest route names, after an error or
    silence."""
    match error:
        case NotLeader() | Unknown():
            return True
        case Conflict():
            return error.code in MOVED
        case NotFound():  # the region has moved; a table that is gone says `table-not-found`
            return error.code == NotFound.default_code
        case Unavailable():
            return error.code != "region-lost"  # a person must put the storage back
    return False


def at_the_end(error: NotFound) -> MetaError:
    """Returns the error after the last attempt: *error* if the table is gone; not-ready for a
    region that no node has opened yet."""
    if error.code != NotFound.default_code:
        return error
    return Unavailable("not-ready", **error.facts)


def may_ask_again(error: BaseException) -> bool:
    """Whether to send a repeatable request to metasrv again after *error*."""
    return isinstance(error, Unavailable | Unknown)


@dataclass(slots=True)
class RegionAttempts:
    """The attempts of one call of a region. `attempts` without what its states and rules cost, a
    tenth of a millisecond a call: reads of one row feel it."""

    until: float
    """Seconds of the loop's clock."""
    rng: Rng
    made: int = 0

    def pause_s(self, error: MetaError, again: Callable[[MetaError], bool]) -> float | None:
        """Seconds before the next attempt after one that failed with *error*. None: it was the
        last, because *again* says so, or because the next would have less than ATTEMPT_S."""
        self.made += 1
        pause_s = REGION_BACKOFF.delay_ms(self.made, self.rng.random()) / 1000
        is_late = asyncio.get_running_loop().time() + pause_s >= self.until - ATTEMPT_S
        return None if is_late or not again(error) else pause_s


def attempts(
    until: float, rng: Rng, backoff: Backoff, again: Callable[[BaseException], bool]
) -> AsyncRetrying:
    """Returns the attempts of a call: until one succeeds, or fails for good, or the next would
    begin after *until* (the loop's clock)."""
    loop = asyncio.get_running_loop()

    def wait_s(state: RetryCallState) -> float:
        return backoff.delay_ms(state.attempt_number, rng.random()) / 1000

    def is_over(state: RetryCallState) -> bool:
        return loop.time() + state.upcoming_sleep >= until

    return AsyncRetrying(
        wait=wait_s,
        stop=is_over,
        retry=retry_if_exception(again),
        reraise=True,
    )
