"""A watcher of the catalog's events: through storms and deaths it has what the log says."""

from keys.catalog.catalog import Catalog
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.value import decode
from metasrv.sdk.control.events import EventSource, EventStream
from metasrv.service.events.event_filter import EventFilter
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.events.events import CatalogEvent, EventsReset
from tests.fakes.chance import SeededRng
from tests.metasrv.service.events.event_mirror import EventMirror, Reads
from tests.sim.checks.invariants import StoreGhost
from tests.sim.clients.client import PATIENCE_MS, Session
from tests.sim.cluster.net import Wire

TOLD = "a version that a watcher was told"
RESUMED = "a watcher that found no server"
RESET = "a watcher that was reset"
ALL = EventFilter()


class CatalogWatcher:
    """Begins with an empty cluster. `mirror` is what events have made, at `version`."""

    def __init__(self, session: Session, ghost: StoreGhost) -> None:
        self._session = session
        self._ghost = ghost
        self._truth = Catalog()
        self._reads = Reads()
        self.mirror = EventMirror()
        rng = SeededRng(session.random.getrandbits(32))
        transport = Wire(session.network)
        source = EventSource(session.http, rng, PATIENCE_MS, transport)
        self._stream = EventStream(source, 0, None, {})

    @property
    def version(self) -> int:
        """The version up to which everything was compared."""
        return self._truth.version

    async def run(self) -> None:
        """Follows for ever. A stream that gives up is asked again."""
        events: list[CatalogEvent] = []
        while True:
            try:
                event = await anext(self._stream)
            except Unavailable:
                self._session.count(RESUMED)
                continue
            except MetaError as error:
                self._session.wrong(f"watcher at {self.version}: {error}")
                return
            if isinstance(event, EventsReset):
                self._session.count(RESET)
                self._follow(event.version)
                self.mirror, events = EventMirror.of(self._truth), []
                continue
            events.append(event)
            if not self._stream._items:
                self._compare(events)
                events = []

    def _compare(self, events: list[CatalogEvent]) -> None:
        """All events of some versions, one after the other."""
        for version in dict.fromkeys(event.version for event in events):
            if version != self.version + 1:
                self._session.wrong(f"watcher was told {version} behind {self.version}")
            self.mirror.take(event for event in events if event.version == version)
            self._follow(version)
            self._session.count(TOLD)
        if self.mirror.shown() != self._reads.shown(self._truth, ALL):
            self._session.wrong(f"watcher at {self.version} has another catalog than the log")

    def _follow(self, version: int) -> None:
        """Moves the catalog of the log forward to *version*."""
        while self.version < version:
            number = self.version + 1
            stored = self._ghost.updates[number]
            update = decode(CatalogUpdate, stored, key=str(CatalogUpdateKey(number)))
            self._truth = self._truth.apply(update, number)
