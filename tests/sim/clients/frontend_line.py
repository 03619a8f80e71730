"""A client's connection to frontends: calls of their service, over a network that loses and
doubles.

Without HTTP, which tests/dataplane/frontend has; what a lost, late or doubled request means is the
same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dataplane.frontend.service import FrontendService
from metasrv_base.errors import MetaError, Unavailable, Unknown
from tests.sim.clients.client import Session
from tests.sim.cluster.frontends import Frontend
from tests.sim.cluster.message_fates import Fate
from tests.sim.loop import in_world

T = TypeVar("T")
PATIENCE_S = 12.0


@dataclass
class Line:
    """From one client to the frontends."""

    session: Session
    frontends: Sequence[Frontend]

    async def ask(
        self, act: Callable[[FrontendService], Awaitable[T]], patience_s: float = PATIENCE_S
    ) -> T:
        """Raises what the frontend says; Unknown: nobody knows whether it was done."""
        frontend = self.session.random.choice(self.frontends)
        weather = self.session.network.weather
        fate = weather.fate(self.session.name, frontend.name)
        if fate is Fate.REFUSED:
            raise Unavailable(what=frontend.name)
        answer: asyncio.Future[T] = self.session.loop.create_future()
        if fate is not Fate.LOST:
            self._later(fate, self._arrive, frontend, act, answer, fate)
        try:
            async with asyncio.timeout(patience_s):
                return await answer
        except TimeoutError as error:
            raise Unknown(what=frontend.name) from error
        finally:
            answer.cancel()

    def _arrive(
        self,
        frontend: Frontend,
        act: Callable[[FrontendService], Awaitable[T]],
        answer: "asyncio.Future[T]",
        fate: Fate,
    ) -> None:
        if not frontend.is_up or frontend.service is None:
            self._later(Fate.FINE, _fail, answer, Unavailable(what=frontend.name))
            return
        self.session.loop.spawn(frontend.node, self._serve(frontend, act, answer, fate))

    async def _serve(
        self,
        frontend: Frontend,
        act: Callable[[FrontendService], Awaitable[T]],
        answer: "asyncio.Future[T]",
        fate: Fate,
    ) -> None:
        assert frontend.service is not None, "whoever runs here is up"
        try:
            found = await act(frontend.service)
        except MetaError as error:
            tell: Callable[[], None] = partial(_fail, answer, error)
        else:
            tell = partial(_answer, answer, found)
            if fate is Fate.TWICE:  # a copy of a refusal could do what was said not to be done
                self.session.count("twice: rows")
                self._later(Fate.LATE, self._arrive, frontend, act, answer, Fate.UNANSWERED)
        weather = self.session.network.weather
        is_cut = weather.is_cut(frontend.name, self.session.name)
        if fate is not Fate.UNANSWERED and not is_cut:
            self._later(Fate.FINE, tell)

    def _later(self, fate: Fate, act: Callable[..., None], *args: Any) -> None:
        way_ms = self.session.network.weather.way_ms(fate)
        in_world(self.session.loop, way_ms, act, *args)


def _answer(answer: "asyncio.Future[Any]", found: object) -> None:
    if not answer.done():
        answer.set_result(found)


def _fail(answer: "asyncio.Future[Any]", error: MetaError) -> None:
    if not answer.done():
        answer.set_exception(error)
