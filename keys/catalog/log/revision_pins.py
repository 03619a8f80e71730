"""Pins of revisions of the store: a reader of many pages at one revision keeps the leader from
compacting etcd above it.

A pin is a courtesy: no answer is wrong without it. Who reads at a revision that was compacted,
by an operator or because its pin had expired, begins again at a new one, `RESTARTS_MAX` times.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import structlog

from keys.model.snapshot.pins import RevisionPin, RevisionPinKey
from keys.store.kv import Compare, Delete, Get, KeyValue, Kv, Put, Request
from keys.store.readable import readable, skip_silently
from keys.store.scan import scan
from keys.value import encode
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, MetaError
from metasrv_base.ids import Ids

PIN_MS = 120_000
"""The time for which a pin holds from its last renewal: the reader may have died."""
PIN_MS_MAX = 60 * 60_000
"""The longest life of a pin, renewed or not: history that etcd keeps fills its disk."""
RESTARTS_MAX = 5
"""Times that a reader begins again because the revision that it read was compacted."""
PINNED_BYTES = 4 << 20
"""Size of a snapshot from which on its revision is pinned: a smaller one is read in a second."""

log = structlog.get_logger()


def is_compacted(error: MetaError) -> bool:
    """Whether the revision that was to be read is gone from the store."""
    return isinstance(error, Conflict) and error.code == "history-expired"


@dataclass(slots=True)
class HeldPin:
    """One pin of this server. `revision` is the one to read at: everything was there before the
    pin."""

    key: RevisionPinKey
    value: RevisionPin
    mod_revision: int
    revision: int


@dataclass(frozen=True, slots=True)
class Pinned:
    """A pin and what was read in its transaction. Without a pin, for want of space or because the
    store did not answer, the reader reads without one."""

    held: HeldPin | None
    ranges: tuple[tuple[KeyValue, ...], ...]

    @property
    def revision(self) -> int:
        """The revision to read at; 0: the newest."""
        return 0 if self.held is None else self.held.revision


@dataclass(frozen=True, slots=True)
class RevisionPins:
    """The pins of one server. It need not lead, so they are written without the fence, each by its
    owner alone under a key of its own."""

    kv: Kv
    clock: Clock
    ids: Ids
    server: str
    deadline_ms: int
    held: dict[RevisionPinKey, HeldPin] = field(default_factory=dict)
    """Pins that were taken and are not released yet, the oldest first."""
    restarts: Counter[str] = field(default_factory=Counter)
    """Times that etcd was compacted under a reader with such a pin, by what it reads: a `rebuild`,
    a `backup`."""

    @property
    def oldest_ms(self) -> int | None:
        """Wall clock at which the oldest pin that is held was taken; None: none is."""
        return min((held.value.since_ms for held in self.held.values()), default=None)

    async def take(self, what: str, reads: Sequence[Get] = ()) -> Pinned:
        """Pins the newest revision, for *what*, and does *reads* in the same transaction. Never
        raises for the store: the answer lacks a pin then, and `ranges` is empty."""
        now_ms = self.clock.wall_ms()
        value = RevisionPin(
            what=what, server=self.server, since_ms=now_ms, expires_at_ms=now_ms + PIN_MS
        )
        key = RevisionPinKey(self.ids.procedure_id())
        put = Request(writes=(Put(bytes(key), encode(value)),), reads=tuple(reads))
        try:
            answer = await self.kv.txn(put, deadline_ms=self.deadline_ms)
        except MetaError as error:
            log.info("revision_not_pinned", what=what, error=error.code)
            return Pinned(None, ())
        held = self.held[key] = HeldPin(key, value, answer.revision, answer.revision - 1)
        return Pinned(held, answer.ranges)

    async def renew(self, held: HeldPin | None) -> None:
        """Call it between two pages: writes at most once in a third of PIN_MS. A pin that is lost
        stays lost: the reader sees it by what it reads."""
        now_ms = self.clock.wall_ms()
        if held is None or held.value.expires_at_ms - now_ms > PIN_MS * 2 // 3:
            return
        until_ms = min(now_ms + PIN_MS, held.value.since_ms + PIN_MS_MAX)
        if until_ms <= held.value.expires_at_ms:
            return
        key, value = bytes(held.key), held.value.model_copy(update={"expires_at_ms": until_ms})
        request = Request((Compare(key, held.mod_revision),), (Put(key, encode(value)),))
        with suppress(MetaError):
            answer = await self.kv.txn(request, deadline_ms=self.deadline_ms)
            if answer.succeeded:
                held.value, held.mod_revision = value, answer.revision

    async def release(self, held: HeldPin | None) -> None:
        """Deletes the pin; one that stays behind expires."""
        if held is not None:
            self.held.pop(held.key, None)
            delete = Request(writes=(Delete(bytes(held.key)),))
            with suppress(MetaError):
                await self.kv.txn(delete, deadline_ms=self.deadline_ms)

    @asynccontextmanager
    async def pinned(self, what: str) -> AsyncGenerator[Pinned]:
        """A pin that is released at the end."""
        pinned = await self.take(what)
        try:
            yield pinned
        finally:
            await self.release(pinned.held)


@dataclass(frozen=True, slots=True)
class StoredRevisionPin:
    """A pin as the store has it."""

    key: RevisionPinKey
    value: RevisionPin
    mod_revision: int
    revision: int
    """The oldest revision that its reader needs."""

    def lives(self, now_ms: int) -> bool:
        """Whether compaction heeds it. The longest life is judged here too: its owner may have a
        clock that is wrong."""
        value = self.value
        return now_ms < min(value.expires_at_ms, value.since_ms + PIN_MS_MAX)


async def revision_pins(kv: Kv, *, deadline_ms: int) -> tuple[StoredRevisionPin, ...]:
    """All pins, those too that have expired, the oldest revision first. One that is written later
    pins the revision at which these were read, or a later one. Raises as reads."""
    items, _ = await scan(kv, RevisionPinKey.under(), deadline_ms=deadline_ms)
    created = {item.key: item.create_revision for item in items}
    pins = [
        StoredRevisionPin(row.key, row.value, row.revision, created[bytes(row.key)] - 1)
        for row in readable(RevisionPinKey, RevisionPin, items, skip_silently)
    ]
    return tuple(sorted(pins, key=lambda pin: (pin.revision, pin.key.reader)))


def compactable(bound: int, pins: Sequence[StoredRevisionPin], now_ms: int) -> int:
    """The revision to compact at: *bound*, or the lowest one that is pinned. What is compacted at n
    can still be read at n."""
    return min([bound, *(pin.revision for pin in pins if pin.lives(now_ms))])
