"""The list of procedures, those that live and those that are over: newest first.

Ids are UUIDv7, so their order is that of time. History is read in windows of time from the newest
backwards: a page costs what it shows, not what there ever was.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass

from base.ids import uuid7, wall_ms_of
from base.wire.procedures import ProcedureBody, ProcedureList
from keys.key import Range
from keys.kv import Get, KeyValue, Page, Readable
from keys.records import ProcedureHistory, ProcedureHistoryKey
from keys.scan import scan
from keys.value import decode
from metasrv.service.pages import ListName, Token, seal, unseal
from metasrv.service.procedure_shapes import ended_body, living_body
from metasrv.service.state import ServerState

WINDOW_MS = 60_000  # the first: what people ask for is mostly what has just been
WINDOW_KEYS = 256  # a window that holds more is made shorter, down to a millisecond
LOOKED_AT_MAX = 4_096  # for one page; where a filter takes few of so many, the page is short
FIRST_ID = "0"
LAST_ID = "g"
"""Below and above every id."""


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

    @property
    def parts(self) -> tuple[str | int | bool | None, ...]:
        """What tells this list from others."""
        words = ("state", *sorted(self.states), "kind", *sorted(self.kinds))
        return (*words, self.resource, self.since_ms, self.until_ms, self.stalled)

    @property
    def first(self) -> str:
        return FIRST_ID if self.since_ms is None else _first_id(self.since_ms)

    @property
    def end(self) -> str:
        return LAST_ID if self.until_ms is None else _first_id(self.until_ms)

    def takes(self, body: ProcedureBody) -> bool:
        """Of one whose id is in its time."""
        names = (f"{body.resource.type}:{body.resource.id}", body.resource.name)
        return (
            (not self.states or body.state in self.states)
            and (not self.kinds or body.kind in self.kinds)
            and (self.resource is None or self.resource in names)
            and (self.stalled is None or body.stalled == self.stalled)
        )


@dataclass(frozen=True, slots=True)
class ListWanted:
    path: str
    size: int
    token: str | None
    only: Filter


async def listed(state: ServerState, wanted: ListWanted) -> ProcedureList:
    term = await state.leading()
    name = ListName(term.cluster_id, wanted.path, wanted.only.parts)
    end = wanted.only.end
    if wanted.token is not None:
        end = min(end, str(unseal(name, wanted.token).after[0]))
    living = dict(term.manager.living())  # before history: what ends meanwhile is in both
    kv, deadline_ms, now_ms = term.ports.kv, term.ports.deadline_ms, state.clock.wall_ms()
    history = _History(kv, deadline_ms, wanted.only.first, end, now_ms)
    found: list[ProcedureBody] = []
    looked_at, last = 0, ""
    async for procedure, ended in _newest_first(living, history):
        if len(found) == wanted.size or looked_at == LOOKED_AT_MAX:
            token = seal(name, Token(0, (last,)))
            return ProcedureList(procedures=tuple(found), next_page_token=token)
        looked_at, last = looked_at + 1, procedure
        body = (
            ended_body(procedure, ended)
            if ended is not None
            else living_body(procedure, living[procedure], now_ms, living.items())
        )
        if wanted.only.takes(body):
            found.append(body.model_copy(update={"statement": None}))
    return ProcedureList(procedures=tuple(found), next_page_token=None)


Ended = Mapping[str, ProcedureHistory]


async def _newest_first(
    living: Collection[str], history: "_History"
) -> AsyncIterator[tuple[str, ProcedureHistory | None]]:
    """Every id, and how it ended; None: it lives."""
    left = {one for one in living if history.first <= one < history.end}
    async for first, ended in history.windows():
        here = {one for one in left if one >= first}
        left -= here
        for procedure in sorted(here | ended.keys(), reverse=True):
            yield procedure, ended.get(procedure)


@dataclass(frozen=True, slots=True)
class _History:
    """What is over, with ids from `first` up to and without `end`; `now_ms` is no younger."""

    kv: Readable
    deadline_ms: int
    first: str
    end: str
    now_ms: int

    async def windows(self) -> AsyncIterator[tuple[str, Ended]]:
        """Where each window that is not empty begins, and what it holds; then the last, to `first`.

        From the newest backwards: longer and longer while nothing is found; where too much is, the
        middle between there and the end is tried, so that a gap of years costs some forty reads.
        """
        page = await self._keys(self.first, self.end, limit=1)
        oldest, revision = (_id_of(page.items[0]) if page.items else self.end), page.revision
        end, width_ms, too_far_ms = self.end, WINDOW_MS, -1
        while end > oldest:
            end_ms = self.now_ms if end == LAST_ID else wall_ms_of(end)
            first_ms = max(end_ms - width_ms, (too_far_ms + end_ms) // 2, 0)
            first = max(_first_id(first_ms), oldest)
            keys = await self._keys(first, end, limit=WINDOW_KEYS, revision=revision)
            if keys.more and first_ms > too_far_ms:
                too_far_ms = first_ms
                continue
            if keys.items:
                yield first, await self._read(first, end, revision)
                growth = 2 if len(keys.items) < WINDOW_KEYS // 4 else 1
                width_ms, too_far_ms = max(end_ms - first_ms, 1) * growth, -1
            else:
                width_ms *= 4
            end = first
        yield self.first, {}

    async def _keys(self, first: str, end: str, *, limit: int, revision: int = 0) -> Page:
        get = Get(_key(first), _key(end), limit=limit, keys_only=True)
        return await self.kv.range(get, deadline_ms=self.deadline_ms, revision=revision)

    async def _read(self, first: str, end: str, revision: int) -> Ended:
        keys = Range(_key(first), _key(end))
        items, _ = await scan(self.kv, keys, deadline_ms=self.deadline_ms, revision=revision)
        return {
            _id_of(item): decode(ProcedureHistory, item.value, key=item.key.decode())
            for item in items
        }


def _first_id(wall_ms: int) -> str:
    return uuid7(wall_ms, bytes(10))


def _key(procedure: str) -> bytes:
    return ProcedureHistoryKey.under().start + procedure.encode()


def _id_of(item: KeyValue) -> str:
    return ProcedureHistoryKey.parse(item.key).procedure
