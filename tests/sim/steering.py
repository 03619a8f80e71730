"""What becomes of a change on its way: operators cancel it, let it stand for a while, slow it down,
and bring back what it was about to drop."""

from contextlib import suppress
from dataclasses import dataclass

from base.errors import MetaError
from base.wire.control import ThrottleRequest
from base.wire.procedures import ProcedureBody
from tests.sim.clients import Session

CANCEL_MS = (1, 20, 200, 4_000)
"""Until when a change is cancelled: states of a healthy one last milliseconds."""
PAUSE_MS = 3_000
GRACE_S = (2, 8)
ASK_MS = 3_000


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    method: str
    path: str
    body: object = None
    undrop: str | None = None
    """The path that brings back what it drops, which is kept for a while."""


@dataclass
class Steering:
    """Of one change that is asked for with *key*, again and again."""

    session: Session
    wish: Wish
    key: str
    paused: str | None = None
    """A procedure that stands, or may: a pause may be on its way for long."""

    async def begin(self) -> None:
        """As far as it still can be."""
        headers = {"idempotency-key": self.key, "prefer": "wait=0"}
        with suppress(MetaError):
            answer = await self.session.http.request(
                self.wish.method,
                self.wish.path,
                json=self.wish.body,
                headers=headers,
                deadline_ms=ASK_MS,
            )
            if answer.status == 202:
                await self.session.think(self.session.random.choice(CANCEL_MS) + 1)
                await self._steer(answer.body(ProcedureBody).id)

    async def go_on(self) -> None:
        if self.paused is not None:
            with suppress(MetaError):
                await self.session.procedures.control(self.paused, "resume")

    async def _steer(self, procedure: str) -> None:
        session, drawn = self.session, self.session.random.random()
        if self.wish.undrop is not None and drawn < 0.6:
            await session.think(GRACE_S[0] * 1000)
            await session.service.ask("POST", self.wish.undrop)
            session.count("a drop that was undropped")
        elif drawn < 0.6:
            await session.procedures.cancel(procedure)
            session.count("a change that was cancelled")
        elif drawn < 0.85:
            self.paused = procedure
            await session.procedures.control(procedure, "pause")
            session.count("a change that was paused")
            await session.think(PAUSE_MS)
            await self.go_on()
        else:
            wanted = ThrottleRequest(percent=50, rows_per_s=session.random.choice([None, 1_000]))
            await session.procedures.control(procedure, "throttle", percent=wanted)
            session.count("a change that was throttled")


def kept(wish: Wish, grace_s: int) -> Wish:
    """*wish*, a drop, with a grace time."""
    if wish.method == "DELETE":
        return Wish(wish.method, f"{wish.path}?grace_s={grace_s}", wish.body, wish.undrop)
    assert isinstance(wish.body, dict), "an alter has operations"
    return Wish(wish.method, wish.path, {**wish.body, "grace_s": grace_s}, wish.undrop)
