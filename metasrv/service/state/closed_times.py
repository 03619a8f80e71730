"""Closes times by the leader's word, for readers as of about now: at most one write a second.

The first of them is served at once. Those that come within the second after a word was given wait
until another one may be, which serves all of them; or until a commit closes their times for free.
"""

import asyncio

from keys.catalog.follower import Follower
from keys.commit.committer import Committer
from metasrv_base.clock import Clock

CLOSE_EVERY_MS = 1_000  # between two writes


class ClosedTimes:
    """The words that one server gives, across its terms."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._due_ms = 0
        """Monotonic: no word is given before."""

    async def close(
        self, at_ms: int, follower: Follower, committer: Committer, clock: Clock
    ) -> None:
        """Once *at_ms*, a time that has passed, is closed in the store and here."""
        async with self._turn:
            if at_ms <= follower.log.closed_ms:
                return
            left_ms = self._due_ms - clock.mono_ms()
            if left_ms > 0:
                await clock.sleep_ms(left_ms)
            if at_ms <= follower.log.closed_ms:  # by a commit meanwhile
                return
            self._due_ms = clock.mono_ms() + CLOSE_EVERY_MS
            until_ms = max(at_ms, clock.wall_ms())
            await committer.close(until_ms)
            follower.log.close(until_ms)
