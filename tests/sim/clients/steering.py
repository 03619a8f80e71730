"""Control of a running change: operators cancel it, let it stand for a while, slow it down, and
bring back what it was about to drop. Some ask while a commit of it is in doubt."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from metasrv_base.errors import MetaError
from metasrv_base.wire.api.control import ThrottleRequest
from metasrv_base.wire.api.procedures import ProcedureBody
from tests.sim.clients.client import Session
from tests.sim.clients.doubts import Doubt

CANCEL_MS = (1, 20, 200, 4_000)
"""Until when a change is cancelled: states of a healthy one last milliseconds."""
PAUSE_MS = 3_000
GRACE_S = (2, 8)
ASK_MS = 3_000
IN_DOUBT = 0.6
"""The chance of a control to be asked for while a commit is in doubt."""
DOUBT_MS = (1, 50, 600, 2_500)
"""Until when it is asked behind such a commit, which is sent again after two seconds."""
RACED = "a control beside a commit whose answer was lost"

T = TypeVar("T")


@dataclass(frozen=True)
class Attempt:
    """A request."""

    method: str
    path: str
    body: object = None
    undrop: str | None = None
    """The path that brings back what it drops, which is kept for a while."""


@dataclass
class Steering:
    """Controls one change that is asked for with *key*, again and again."""

    session: Session
    attempt: Attempt
    key: str
    paused: str | None = None
    """A procedure that stands, or may: a pause may be on its way for long."""
    doubt: Doubt | None = None
    """Doubt about a commit, during which the control is asked for."""
    is_cancelled: bool = False
    """Whether a cancel of it was taken."""

    async def begin(self) -> None:
        """As far as it still can be."""
        session = self.session
        if session.random.random() < IN_DOUBT:
            self.doubt = Doubt(session.network.weather, session.loop.create_future())
        headers = {"idempotency-key": self.key, "prefer": "wait=0"}
        with suppress(MetaError):
            answer = await self.session.http.request(
                self.attempt.method,
                self.attempt.path,
                json=self.attempt.body,
                headers=headers,
                deadline_ms=ASK_MS,
            )
            if answer.status == 202:
                await self._steer(answer.body(ProcedureBody).id)
        if self.doubt is not None:
            self.doubt.end()

    async def go_on(self) -> None:
        if self.paused is not None:
            with suppress(MetaError):
                await self.session.procedures.control(self.paused, "resume")

    async def _steer(self, procedure: str) -> None:
        session, drawn = self.session, self.session.random.random()
        if self.attempt.undrop is not None and drawn < 0.6:
            await session.think(GRACE_S[0] * 1000)
            await self._beside(procedure, "undrop", self._undrop)
        elif drawn < 0.55:
            await session.think(session.random.choice(CANCEL_MS) + 1)
            await self._beside(procedure, "cancel", self._cancel)
        elif drawn < 0.7 and self.doubt is not None:
            async with asyncio.TaskGroup() as asking:
                asking.create_task(self._try(self._pause, procedure))
                await self._try(partial(self._beside, procedure, "resume"), self._resume)
        elif drawn < 0.8:
            await self._beside(procedure, "pause", self._pause)
            await session.think(PAUSE_MS)
            await self._stands(procedure)
            await self._beside(procedure, "resume", self._resume)
        elif drawn < 0.9:
            await self._beside(procedure, "retry", self._retry)
        else:
            await self._beside(procedure, "throttle", self._throttle)

    async def _beside(
        self, procedure: str, what: str, ask: Callable[[str], Awaitable[object]]
    ) -> None:
        """Asks at once, or as soon as the answer to the next commit of it is lost."""
        session, doubt = self.session, self.doubt
        if doubt is not None and await doubt.has_come(procedure):
            self.doubt = None
            await session.think(session.random.choice(DOUBT_MS) + 1)
            session.count(RACED)
            session.count(f"{what} beside a commit whose answer was lost")
        await ask(procedure)

    async def _try(self, ask: Callable[[T], Awaitable[object]], what: T) -> None:
        """Asks; a refusal, or no answer, is fine."""
        with suppress(MetaError):
            await ask(what)

    # ---- controls

    async def _undrop(self, _: str) -> None:
        assert self.attempt.undrop is not None
        await self.session.service.ask("POST", self.attempt.undrop)
        self.session.count("a drop that was undropped")

    async def _cancel(self, procedure: str) -> None:
        await self.session.procedures.cancel(procedure)
        self.is_cancelled = True
        self.session.count("a change that was cancelled")

    async def _pause(self, procedure: str) -> None:
        self.paused = procedure
        await self.session.procedures.control(procedure, "pause")
        self.session.count("a change that was paused")

    async def _resume(self, procedure: str) -> None:
        await self.session.procedures.control(procedure, "resume")

    async def _retry(self, procedure: str) -> None:
        await self.session.procedures.control(procedure, "retry")

    async def _throttle(self, procedure: str) -> None:
        wanted = ThrottleRequest(percent=50, rows_per_s=self.session.random.choice([None, 1_000]))
        await self.session.procedures.control(procedure, "throttle", percent=wanted)
        self.session.count("a change that was throttled")

    async def _stands(self, procedure: str) -> None:
        """A paused procedure stays where it is until somebody says otherwise."""
        found = await self.session.procedures.get(procedure)
        self.session.count("a change that was seen to stand")
        if found.state != "paused":
            self.session.wrong(f"procedure {procedure} was paused, and is {found.state}")


def kept(attempt: Attempt, grace_s: int) -> Attempt:
    """*attempt*, a drop, with a grace time."""
    if attempt.method == "DELETE":
        return Attempt(
            attempt.method, f"{attempt.path}?grace_s={grace_s}", attempt.body, attempt.undrop
        )
    assert isinstance(attempt.body, dict), "an alter has operations"
    return Attempt(
        attempt.method, attempt.path, {**attempt.body, "grace_s": grace_s}, attempt.undrop
    )
