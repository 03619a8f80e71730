"""Procedures for people: list them, watch one, steer one."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from base.errors import NotFound
from base.ids import UUID_TEXT
from base.wire.procedures import ProcedureBody, ProcedureList
from keys.key import Range
from keys.kv import PAGE_KEYS_MAX, Get, Readable
from keys.records import ProcedureHistory, ProcedureHistoryKey
from keys.value import decode
from metasrv.service.changing import only_the_leader, until_over
from metasrv.service.pages import ListName, Token, seal, unseal
from metasrv.service.procedure_shapes import ended_body, living_body, procedure_etag
from metasrv.service.state import ServerState
from metasrv.term import Term
from procedures.entry import Entry
from procedures.steering import Command

CHUNK = 128  # histories read at once while a list is filled from the newest backwards
LOOK_MS = 1_000  # progress is memory that nobody announces: a long poll looks this often


@dataclass(frozen=True, slots=True)
class Filter:
    """Only procedures of which all of these hold; empty: any."""

    states: Collection[str] = ()
    kinds: Collection[str] = ()

    def takes(self, body: ProcedureBody) -> bool:
        return (not self.states or body.state in self.states) and (
            not self.kinds or body.kind in self.kinds
        )


@dataclass(frozen=True, slots=True)
class Shown:
    body: ProcedureBody
    etag: str


async def get(
    state: ServerState, procedure: str, *, unlike: str | None = None, wait_ms: int = 0
) -> Shown:
    """As it is; with *unlike*, an ETag: once it differs, *wait_ms* have passed, or we end."""
    term = await state.leading()
    _must_be_an_id(procedure)
    until = state.clock.mono_ms() + wait_ms
    while True:
        found = await term.manager.find(procedure)
        etag = procedure_etag(found)
        left = 0 if state.is_stopping else until - state.clock.mono_ms()
        if etag != unlike or left <= 0 or isinstance(found, ProcedureHistory):
            return Shown(_body(state, term, procedure, found), etag)
        with suppress(TimeoutError):  # we were told to end: answered as it stands
            async with state.while_serving():
                await term.manager.changed(deadline_ms=min(left, LOOK_MS))


async def control(state: ServerState, procedure: str, command: Command, wait_ms: int) -> Shown:
    """Answered once it is stored; then waits for the end as long as the client does."""
    with only_the_leader():
        term = await state.leading()
        _must_be_an_id(procedure)
        found = await term.manager.control(procedure, command)
        if wait_ms:
            found = await until_over(state, term, procedure, wait_ms)
        return Shown(_body(state, term, procedure, found), procedure_etag(found))


def _must_be_an_id(procedure: str) -> None:
    if not UUID_TEXT.fullmatch(procedure):
        raise NotFound("procedure-not-found", procedure_id=procedure)


def _body(
    state: ServerState, term: Term, procedure: str, found: Entry | ProcedureHistory
) -> ProcedureBody:
    if isinstance(found, ProcedureHistory):
        return ended_body(procedure, found)
    return living_body(procedure, found, state.clock.wall_ms(), term.manager.living())


# The list ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListWanted:
    path: str
    size: int
    token: str | None
    only: Filter


async def listed(state: ServerState, wanted: ListWanted) -> ProcedureList:
    """Newest first; ids are UUIDv7, so their order is that of submission."""
    term = await state.leading()
    filters = ("state", *sorted(wanted.only.states), "kind", *sorted(wanted.only.kinds))
    name = ListName(term.cluster_id, wanted.path, filters)
    below = str(unseal(name, wanted.token).after[0]) if wanted.token is not None else None
    found = await _newest(state, term, wanted, below)
    more = len(found) > wanted.size
    shown = found[: wanted.size]
    token = seal(name, Token(0, (shown[-1].id,))) if more else None
    return ProcedureList(procedures=tuple(shown), next_page_token=token)


async def _newest(
    state: ServerState, term: Term, wanted: ListWanted, below: str | None
) -> list[ProcedureBody]:
    """One more than a page holds, if there is one more."""
    kv, deadline_ms = term.ports.kv, term.ports.deadline_ms
    living = dict(term.manager.living())  # before history: what ends meanwhile is in both
    over, revision = await _history_ids(kv, deadline_ms)
    ids = sorted(living.keys() | set(over), reverse=True)
    ids = [one for one in ids if below is None or one < below]
    found: list[ProcedureBody] = []
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        ended = await _histories(kv, chunk, revision, deadline_ms)
        for one in chunk:
            body = (
                ended_body(one, ended[one])
                if one in ended
                else living_body(one, living[one], state.clock.wall_ms(), living.items())
            )
            if wanted.only.takes(body):
                found.append(body)
            if len(found) > wanted.size:
                return found
    return found


async def _history_ids(kv: Readable, deadline_ms: int) -> tuple[list[str], int]:
    """Every id in history, keys only, and the revision they were read at."""
    start, end = ProcedureHistoryKey.under()
    found: list[str] = []
    revision, more = 0, True
    while more:
        get = Get(start, end, limit=PAGE_KEYS_MAX, keys_only=True)
        page = await kv.range(get, deadline_ms=deadline_ms, revision=revision)
        found += [ProcedureHistoryKey.parse(item.key).procedure for item in page.items]
        revision, more = page.revision, page.more
        start = page.items[-1].key + b"\0" if page.items else start
    return found, revision


async def _histories(
    kv: Readable, ids: Sequence[str], revision: int, deadline_ms: int
) -> dict[str, ProcedureHistory]:
    """Those of *ids*, newest first, that are over at *revision*."""
    keys = Range(bytes(ProcedureHistoryKey(ids[-1])), bytes(ProcedureHistoryKey(ids[0])) + b"\0")
    get = Get(keys.start, keys.end, limit=PAGE_KEYS_MAX)
    page = await kv.range(get, deadline_ms=deadline_ms, revision=revision)
    return {
        ProcedureHistoryKey.parse(item.key).procedure: decode(
            ProcedureHistory, item.value, key=item.key.decode()
        )
        for item in page.items
    }
