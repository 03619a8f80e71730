"""The list of procedures, those that live and those that are over: newest first.

A page costs what it shows, not what there ever was (metasrv/service/state/history.py).
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass

from keys.model.records import ProcedureHistory
from metasrv.service.bodies.procedure_shapes import ended_body, living_body
from metasrv.service.pages import ListName, PageToken, seal, unseal
from metasrv.service.state.history import FIRST_ID, LAST_ID, History, first_id
from metasrv.service.state.state import ServerState
from metasrv_base.wire.api.procedures import ENDS, ProcedureBody, ProcedureList

LOOKED_AT_ONCE = 64  # between two yields of the event loop
LOOKED_AT_MAX = 4_096  # for one page; where a filter takes few of so many, the page is short


@dataclass(frozen=True, slots=True)
class Filter:
    """Only procedures of which all of these hold; empty or None: any."""

    states: Collection[str] = ()
    kinds: Collection[str] = ()
    resource: str | None = None
    """`type:id`, as `table:1024`, or the resource's name."""
    since_ms: int | None = None
    """The id was made then or later."""
    until_ms: int | None = None
    """The id was made before."""
    stalled: bool | None = None
    parent: str | None = None
    """The parent's id."""

    @property
    def parts(self) -> tuple[str | int | bool | None, ...]:
        """The facts that tell this list from others."""
        words = ("state", *sorted(self.states), "kind", *sorted(self.kinds))
        return (*words, self.resource, self.since_ms, self.until_ms, self.stalled, self.parent)

    @property
    def is_of_living(self) -> bool:
        """Whether nothing that is over can be taken."""
        return bool(self.states) and ENDS.isdisjoint(self.states)

    @property
    def first(self) -> str:
        return FIRST_ID if self.since_ms is None else first_id(self.since_ms)

    @property
    def end(self) -> str:
        return LAST_ID if self.until_ms is None else first_id(self.until_ms)

    def takes(self, body: ProcedureBody) -> bool:
        """Whether the list has a procedure whose id lies in its time."""
        names = (f"{body.resource.type}:{body.resource.id}", body.resource.name)
        return (
            (not self.states or body.state in self.states)
            and (not self.kinds or body.kind in self.kinds)
            and (self.resource is None or self.resource in names)
            and (self.parent is None or body.parent_id == self.parent)
            and (self.stalled is None or body.stalled == self.stalled)
        )


@dataclass(frozen=True, slots=True)
class ListWanted:
    path: str
    size: int
    token: str | None
    only: Filter


async def listed(state: ServerState, request: ListWanted) -> ProcedureList:
    term = await state.leading()
    name = ListName(term.cluster_id, request.path, request.only.parts)
    end = request.only.end
    if request.token is not None:
        end = min(end, str(unseal(name, request.token).after[0]))
    locks = term.manager.locks
    living = dict(term.manager.living())  # before history: what ends meanwhile is in both
    kv, deadline_ms, now_ms = term.ports.kv, term.ports.deadline_ms, state.clock.wall_ms()
    history = History(kv, deadline_ms, request.only.first, end, now_ms)
    bodies: list[ProcedureBody] = []
    looked_at, last = 0, ""
    async for procedure, ended in _newest_first(living, history, request.only):
        if len(bodies) == request.size or looked_at == LOOKED_AT_MAX:
            token = seal(name, PageToken(0, (last,)))
            return ProcedureList(procedures=tuple(bodies), next_page_token=token)
        looked_at, last = looked_at + 1, procedure
        if looked_at % LOOKED_AT_ONCE == 0:
            await asyncio.sleep(0)
        body = (
            ended_body(procedure, ended)
            if ended is not None
            else living_body(procedure, living[procedure], now_ms, locks.children(procedure))
        )
        if request.only.takes(body):
            bodies.append(body.model_copy(update={"statement": None}))
    return ProcedureList(procedures=tuple(bodies), next_page_token=None)


async def _newest_first(
    living: Collection[str], history: History, only: Filter
) -> AsyncIterator[tuple[str, ProcedureHistory | None]]:
    """Every id that *only* may take, and how it ended; None: it lives."""
    left = {living_id for living_id in living if history.first <= living_id < history.end}
    if only.is_of_living:
        for procedure in sorted(left, reverse=True):
            yield procedure, None
        return
    async for first, ended in history.windows():
        here = {living_id for living_id in left if living_id >= first}
        left -= here
        for procedure in sorted(here | ended.keys(), reverse=True):
            yield procedure, ended.get(procedure)
