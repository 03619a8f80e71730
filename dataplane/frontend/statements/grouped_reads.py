"""Reads of single rows that are sent together: while requests to a region are under way, the reads
that come wait, and the next request asks for all of them.

A group has only reads that came before it was sent, so each sees what was acknowledged before it
began. A read that finds fewer than `IN_FLIGHT` requests under way waits for nobody.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from metasrv_base.errors import MetaError, Unavailable

GROUP_KEYS = 8
"""Keys of one request: a node looks as many up without a thread."""
IN_FLIGHT = 2
"""Requests for groups of one lane under way: the node has one to answer while the answer to the
other is taken apart."""


class ReadGroup(NamedTuple):
    """Reads that may share a request."""

    region_id: str
    address: str | None
    epoch: int
    table_id: int
    schema_version: int


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """The rows of a group."""

    rows: pa.Table
    places: Mapping[bytes, int]
    """Places of rows, by key."""
    is_whole: bool
    """Whether the answer is whole; else it ended at its bound of bytes, and rows may be missing."""

    def row(self, key: bytes) -> pa.Table | None:
        """A table of the row, or none; None: it must be asked for again, by itself."""
        offset = self.places.get(key)
        if offset is None and not self.is_whole:
            return None
        return self.rows.slice(offset or 0, 0 if offset is None else 1)


@dataclass(frozen=True, slots=True)
class _Waiter:
    key: bytes
    turn: asyncio.Future[GroupAnswer | None]
    """The answer; None if the waiter is to send the next group."""

    def tell(self, outcome: GroupAnswer | MetaError) -> None:
        """Unless it has left."""
        if self.turn.done():
            return
        if isinstance(outcome, MetaError):
            self.turn.set_exception(outcome)
        else:
            self.turn.set_result(outcome)


@dataclass(slots=True)
class _Queue:
    in_flight: int = 0
    waiting: deque[_Waiter] = field(default_factory=deque)
    """Bounded by the number of open transactions."""

    def members(self) -> list[_Waiter]:
        """Removes and returns those who go with the next group."""
        return [self.waiting.popleft() for _ in range(min(len(self.waiting), GROUP_KEYS - 1))]

    def ended(self) -> None:
        """One request less: who waits longest sends the next."""
        while self.waiting:
            turn = self.waiting.popleft().turn
            if not turn.done():
                turn.set_result(None)
                return
        self.in_flight -= 1


class GroupedReads:
    """One event loop owns it."""

    def __init__(self) -> None:
        self.lanes: dict[ReadGroup, _Queue] = {}

    async def row(
        self,
        lane: ReadGroup,
        key: bytes,
        ask: Callable[[Sequence[bytes]], Awaitable[GroupAnswer]],
    ) -> pa.Table | None:
        """Returns the row of *key*, as `GroupAnswer.row`; it may be read together with those of
        other statements.

        *ask* sends sorted keys; its error is raised to all of a group. Raises Unavailable when the
        task that sends for the others was cancelled.
        """
        queue = self.lanes.setdefault(lane, _Queue())
        if queue.in_flight < IN_FLIGHT:
            queue.in_flight += 1
        elif (answer := await self._turn(lane, queue, key)) is not None:
            return answer.row(key)
        members = queue.members()
        outcome: GroupAnswer | MetaError = Unavailable("not-ready")
        try:
            outcome = await ask(sorted({key, *(member.key for member in members)}))
            return outcome.row(key)
        except MetaError as error:
            outcome = error
            raise
        finally:
            self._ended(lane, queue)
            for member in members:
                member.tell(outcome)

    async def _turn(self, lane: ReadGroup, queue: _Queue, key: bytes) -> GroupAnswer | None:
        turn: asyncio.Future[GroupAnswer | None] = asyncio.get_running_loop().create_future()
        queue.waiting.append(_Waiter(key, turn))
        try:
            return await turn
        except asyncio.CancelledError:
            has_come = turn.done() and not turn.cancelled() and turn.exception() is None
            if has_come and turn.result() is None:  # it goes without sending the next group
                self._ended(lane, queue)
            raise

    def _ended(self, lane: ReadGroup, queue: _Queue) -> None:
        queue.ended()
        if not queue.in_flight:
            self.lanes.pop(lane, None)
