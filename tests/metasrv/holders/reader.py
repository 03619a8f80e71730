"""A reader of the catalog's stream, at one server in this process."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Self

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.store.memory import MemoryKv
from metasrv.service.catalog.feed import Start, lines
from metasrv.service.state.feed_lines import FeedLines, Wanted
from metasrv.service.state.state import ServerState
from metasrv_base.feed.catalog_replica import CatalogReplica, FeedReader
from metasrv_base.wire.frontend.feed import HeardLine, read_line
from tests.keys.catalog.logs import first_update
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import state_of


@dataclass
class Reader:
    """`told`: every line that it was given, in order."""

    stream: AsyncGenerator[bytes]
    reading: FeedReader = field(default_factory=FeedReader)
    told: list[HeardLine] = field(default_factory=list)

    @classmethod
    def of(cls, state: ServerState, start: int | None = None, wanted: Wanted = None) -> Self:
        return cls(lines(state, Start(start, wanted)))

    def again(self, state: ServerState) -> "Reader":
        """The same reader at another server, from where it is."""
        return Reader(lines(state, Start(self.mirror.version, None)), self.reading.ended())

    @property
    def mirror(self) -> CatalogReplica:
        assert self.reading.mirror is not None
        return self.reading.mirror

    @property
    def types(self) -> list[str]:
        return [line.type for line in self.told]

    async def next(self) -> HeardLine:
        line = read_line(await anext(self.stream))
        self.told.append(line)
        self.reading = self.reading.heard(line)
        return line

    async def at(self, version: int) -> CatalogReplica:
        """Reads until it knows that version."""
        while self.reading.mirror is None or self.mirror.version < version:
            await self.next()
        return self.mirror

    async def until(self, kind: str) -> HeardLine:
        while (line := await self.next()).type != kind:
            pass
        return line


def state() -> ServerState:
    """A server that has loaded the first version, and is told of more by `offer`."""
    clock = ShiftedClock()
    found = state_of("ms-1", MemoryKv(clock), clock)
    found.follower.log.loaded.set()
    found.follower.log.offer(first_update(), 1)
    return found


def whole(follower: Follower, wanted: Wanted = None) -> CatalogReplica:
    """Returns the catalog that a new reader would be given now."""
    return mirror_of(follower.catalog, wanted)


def mirror_of(catalog: Catalog, wanted: Wanted = None) -> CatalogReplica:
    reading = FeedReader()
    for line in FeedLines().snapshot(catalog, wanted, {}):
        reading = reading.heard(read_line(line))
    assert reading.mirror is not None
    return reading.mirror
