"""Events as bytes: each version is encoded once for all watchers, each selection of it once too.

A large version is encoded in turns. What is kept is bounded in versions and bytes; a version that
is asked for again later is encoded again.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from keys.catalog.catalog import Catalog
from keys.model.log import CatalogUpdate
from metasrv.service.events.catalog_events import events_of
from metasrv.service.events.event_filter import EventFilter, EventScope, scopes_of
from metasrv_base.concurrency.turns import Turns
from metasrv_base.wire.events.events import RESET, VERSION, CatalogEvent, EventsReset
from metasrv_base.wire.http import sse

EVENTS_OF_A_TURN = 32  # encoded between two yields of the event loop: some 5 ms of small tables
VERSIONS_KEPT = 256  # watchers that follow are nearly all at the newest
FILTERS_KEPT = 2_048  # selections of one version; more than watchers
BYTES_KEPT = 32 << 20  # of events and of selections of them

ScopedEvent = tuple[tuple[EventScope, ...], bytes]
"""The objects that an event is about, and the event as JSON."""


class EncodedVersion:
    """The events of one version: first `encode`, then `block`."""

    def __init__(self, before: Catalog, update: CatalogUpdate) -> None:
        self.version = update.version
        self.bytes = 0
        """Bytes of events and blocks so far."""
        self._before = before
        self._update = update
        self._left: Iterator[CatalogEvent] | None = events_of(before, update)
        self._events: list[ScopedEvent] = []
        self._blocks: dict[EventFilter, bytes] = {}

    @property
    def is_encoded(self) -> bool:
        return self._left is None

    def encode(self) -> Turns[None]:
        """Encodes the events that are left, with turns for others in between. Watchers may do so
        side by side: each goes on where the last one was."""
        while self._left is not None:
            some = self._next(self._left)
            self._events += some
            self.bytes += sum(len(text) for _, text in some)
            if len(some) < EVENTS_OF_A_TURN:
                self._left = None
            else:
                yield

    def _next(self, left: Iterator[CatalogEvent]) -> list[ScopedEvent]:
        """Encodes some events. Raises what *left* does, for each watcher again: an iterator that
        has failed looks like one that is over."""
        is_sound = False
        try:
            some = [
                (scopes_of(event), event.model_dump_json().encode())
                for event in islice(left, EVENTS_OF_A_TURN)
            ]
            is_sound = True
        finally:
            if not is_sound:
                self._left = events_of(self._before, self._update)
                self._events.clear()
        return some

    def block(self, selection: EventFilter) -> bytes:
        """The events that *selection* selects, as one server-sent event; empty: none."""
        assert self.is_encoded
        block = self._blocks.get(selection)
        if block is None:
            if len(self._blocks) >= FILTERS_KEPT:
                self._blocks.clear()
            block = self._blocks[selection] = self._block(selection)
            self.bytes += len(block)
        return block

    def _block(self, selection: EventFilter) -> bytes:
        texts = list(selection.select(self._events, self._before))
        if not texts:
            return b""
        head = b"id: %d\nevent: %b\ndata: " % (self.version, VERSION.encode())
        data = b'{"version":%d,"events":[%b]}' % (self.version, b",".join(texts))
        return head + data + sse.BOUNDARY


@dataclass(slots=True)
class EventLines:
    """The versions that were encoded last."""

    _versions: OrderedDict[int, EncodedVersion] = field(default_factory=OrderedDict)
    encoded: int = 0
    """Versions that were encoded since the start."""

    def version(self, before: Catalog, update: CatalogUpdate) -> EncodedVersion:
        """Returns the encoded events of *update*, which follows the catalog *before*; encodes them
        once."""
        version = self._versions.get(update.version)
        if version is None:
            version = self._versions[update.version] = EncodedVersion(before, update)
            self.encoded += 1
            self._forget()
        self._versions.move_to_end(update.version)
        return version

    def _forget(self) -> None:
        """The newest one stays, however large it is."""
        size = sum(each.bytes for each in self._versions.values())
        while len(self._versions) > 1 and (
            size > BYTES_KEPT or len(self._versions) > VERSIONS_KEPT
        ):
            _, oldest = self._versions.popitem(last=False)
            size -= oldest.bytes


def reset_block(reset: EventsReset) -> bytes:
    return sse.event(RESET, reset.model_dump_json(), str(reset.version))


def position_block(version: int) -> bytes:
    """A sign of life: all events up to *version* that the watcher asked for were sent."""
    return b":\nid: %d%b" % (version, sse.BOUNDARY)
