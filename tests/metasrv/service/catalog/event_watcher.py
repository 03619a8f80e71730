"""A watcher of the catalog's events at one server in this process."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from random import Random

import orjson

from metasrv.service.catalog.event_stream import begun, blocks
from metasrv.service.events.event_filter import EventFilter
from metasrv.service.state.state import ServerState
from metasrv_base.wire.events.events import EventsReset, VersionEvents, read_version
from metasrv_base.wire.http import sse
from tests.keys.catalog.logs import update
from tests.metasrv.holders.reader import state
from tests.metasrv.service.events.event_mirror import EventMirror, Reads
from tests.metasrv.service.events.histories import History

ALL = EventFilter()
Block = VersionEvents | EventsReset | str | int


@dataclass
class Watcher:
    """`told`: versions, resets, the names of other events, and ids without an event."""

    stream: AsyncGenerator[bytes]
    told: list[Block] = field(default_factory=list)
    _rest: bytes = b""

    @classmethod
    async def at(
        cls,
        state: ServerState,
        since: int | None = None,
        last_id: str | None = None,
        wanted: EventFilter = ALL,
    ) -> "Watcher":
        return cls(blocks(state, await begun(state, wanted, since, last_id)))

    async def next(self) -> Block:
        """The next block."""
        while sse.BOUNDARY not in self._rest:
            self._rest += await anext(self.stream)
        text, _, self._rest = self._rest.partition(sse.BOUNDARY)
        self.told.append(block_in(text))
        return self.told[-1]

    async def until(self, version: int) -> None:
        """Reads until the server says that it has told all up to *version*."""
        while await self.next() != version:
            pass

    async def rest(self) -> list[Block]:
        """Reads to the end of the stream."""
        parts = self._rest + b"".join([part async for part in self.stream])
        self.told += [block_in(text) for text in parts.split(sse.BOUNDARY) if text]
        return self.told

    @property
    def versions(self) -> list[int]:
        """Versions whose events it was told, in order."""
        return [block.version for block in self.told if isinstance(block, VersionEvents)]


def block_in(text: bytes) -> Block:
    fields = dict(line.split(": ", 1) for line in text.decode().split("\n") if ": " in line)
    if "event" not in fields:
        return int(fields["id"])
    if fields["event"] == "version":
        block = read_version(fields["data"])
        assert block.version == int(fields["id"])
        return block
    if fields["event"] == "reset":
        assert orjson.loads(fields["data"])["version"] == int(fields["id"])
        return EventsReset.model_validate_json(fields["data"])
    return fields["event"]


def fresh() -> ServerState:
    one = state()
    one.follower.log.heard_at_ms = one.clock.mono_ms()
    return one


def grow(one: ServerState, history: History, versions: int) -> int:
    for _ in range(versions):
        version = one.follower.catalog.version + 1
        one.follower.log.offer(update(version, history.entry()), version)
    return one.follower.catalog.version


async def follow_any_log(seed: int) -> None:
    """Watchers of all kinds come, are cut and come again; each is compared with reads."""
    one, history, draw, reads = fresh(), History(seed), Random(seed), Reads()
    wanted = [ALL, EventFilter(schema="a"), EventFilter(table="t1"), EventFilter(table_id=1026)]
    mirrors = [EventMirror.of(one.follower.catalog, each) for each in wanted]
    positions = [one.follower.catalog.version] * len(wanted)

    for _ in range(8):
        version = grow(one, history, draw.randrange(1, 12))
        for place, mirror in enumerate(mirrors):
            watcher = await Watcher.at(one, positions[place], wanted=mirror.wanted)
            if draw.random() < 0.5:  # cut in the middle
                await watcher.next()
            else:
                await watcher.until(version)
            for block in watcher.told:
                if isinstance(block, VersionEvents):
                    positions[place] = block.version
                    mirror.take(block.events)
                elif isinstance(block, int):
                    positions[place] = block
            catalog = one.follower.at(positions[place])
            assert catalog is not None
            assert mirror.shown() == reads.shown(catalog, mirror.wanted)
            await watcher.stream.aclose()
