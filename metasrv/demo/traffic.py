"""Statements on flights through a frontend, one after the other: rows come, change and go.

They are sent as any client would, over HTTP; a statement that one frontend leaves unanswered is
sent to the next under the same key, so it is done once.
"""

import asyncio
import uuid
from collections.abc import Sequence

from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from metasrv_base.rng import SystemRng
from metasrv_base.rows.retry import REGION_BACKOFF, SENT_MS_MAX, attempts, may_ask_again
from metasrv_base.wire.frontend.rows import SENT_MS, JsonRow, RowsRequest, WriteAnswer
from metasrv_base.wire.http.client import HttpClient

FIRST_ID = 10_000_000  # no flight has such a number
APART = 1_000_000  # between the first ids of two of them
ROWS = 20  # per insert, spread over the regions by the hash of their ids
PAUSE_MS = 10
TRY_MS = 2_000  # then the next frontend is asked
STATEMENT_MS = SENT_MS_MAX


class Traffic:
    """Rows of its own: each is inserted, gets another aircraft, and every other one is deleted."""

    def __init__(self, number: int, urls: Sequence[str], table_id: int, clock: Clock) -> None:
        """Prepares a writer. *urls* are of the frontends, the preferred one first."""
        self._clock = clock
        self._rng = SystemRng()
        self._client = HttpClient(urls)
        self._path = f"/v1/tables/{table_id}/rows"
        self._first = self._next = FIRST_ID + number * APART
        self._is_stopped = False
        self.statements = 0
        self.failures: list[MetaError] = []
        self.longest_ms = 0

    def stop(self) -> None:
        self._is_stopped = True

    async def run(self) -> None:
        while not self._is_stopped:
            ids = range(self._next, self._next + ROWS)
            self._next += ROWS
            await self._send("insert", [_flight(id) for id in ids])
            await self._send("update", [{"id": id, "tailnum": f"M{id}"} for id in ids])
            await self._send("delete", [{"id": id} for id in ids[::2]])
            await self._clock.sleep_ms(PAUSE_MS)

    async def went_on(self, statements: int, *, within_s: float) -> None:
        """Waits until so many more statements are done. Raises TimeoutError."""
        target = self.statements + statements
        async with asyncio.timeout(within_s):
            while self.statements < target:
                await self._clock.sleep_ms(PAUSE_MS)

    async def clean(self) -> None:
        """Takes its rows out, and ends."""
        ids = range(self._first, self._next)
        for start in range(0, len(ids), 1_000):
            await self._send("delete", [{"id": id} for id in ids[start : start + 1_000]])
        await self._client.close()

    async def _send(self, op: str, rows: Sequence[JsonRow]) -> None:
        """Sends one statement, and notes its error, if any, and the time that it took."""
        begun = self._clock.mono_ms()
        request = RowsRequest.model_validate({"op": op, "rows": rows})
        try:
            await self._until_answered(request, str(uuid.uuid4()))
        except MetaError as error:
            self.failures.append(error)
        self.statements += 1
        self.longest_ms = max(self.longest_ms, self._clock.mono_ms() - begun)

    async def _until_answered(self, request: RowsRequest, key: str) -> None:
        until = asyncio.get_running_loop().time() + STATEMENT_MS / 1000
        sent_ms = self._clock.wall_ms()
        async for attempt in attempts(until, self._rng, REGION_BACKOFF, may_ask_again):
            with attempt:
                answer = await self._client.request(
                    "POST",
                    self._path,
                    json=request,
                    headers={"idempotency-key": key, SENT_MS: str(sent_ms)},
                    deadline_ms=STATEMENT_MS,
                    try_ms=TRY_MS,
                )
                answer.body(WriteAnswer)


def _flight(id: int) -> JsonRow:
    return {"id": id, "carrier": "ZZ", "tailnum": f"N{id}", "origin": "JFK"}
