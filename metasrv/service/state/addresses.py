"""Addresses of nodes, for answers that show routes, and their zones, as any server knows them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from keys.key import Range
from keys.model.cluster import DATANODE, NodeKey, NodeRecord
from keys.store.kv import KeyValue, Kv, Watched
from keys.store.readable import readable, skip_silently
from keys.store.scan import scan
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError, Unavailable

KEPT_MS = 1_000  # a node that moved is found this late by clients that ask; they then ask again
PAUSE_MS = 200  # between attempts to reach a silent store
DATANODES: Range = NodeKey.under(DATANODE)


class NodePlace(NamedTuple):
    """The address and the zone of a node."""

    address: str
    zone: str


@dataclass(slots=True)
class Addresses:
    """Registrations are few and change rarely: read whole once, then heard of. Where nobody
    follows, they are read whole, and kept for a moment."""

    kv: Kv
    clock: Clock
    deadline_ms: int
    _known: Mapping[str, str] = field(default_factory=dict)
    """Replaced by every change, so that what was made of the same addresses stays true."""
    _places: Mapping[str, NodePlace] = field(default_factory=dict)
    _read_at_ms: int | None = None
    followed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while a watch reports every change."""

    async def known(self) -> Mapping[str, str]:
        """Node id -> base URL. While the store is silent: as last read."""
        now = self.clock.mono_ms()
        is_fresh = self._read_at_ms is not None and now - self._read_at_ms < KEPT_MS
        if self.followed.is_set() or is_fresh:
            return self._known
        try:
            await self._read()
        except Unavailable:
            return self._known
        self._read_at_ms = now
        return self._known

    async def places(self) -> Mapping[str, NodePlace]:
        """Node id -> its address and zone, as `known`."""
        await self.known()
        return self._places

    async def follow(self) -> None:
        """Follows changes for ever. While the watch stands nobody here has to read."""
        while True:
            try:
                revision = await self._read()
                self.followed.set()
                watch = self.kv.watch(*DATANODES, start_revision=revision + 1)
                async for watched in watch:
                    self._take(watched)
            except MetaError:  # it is read again, and who asks meanwhile is told what was known
                self.followed.clear()
                await self.clock.sleep_ms(PAUSE_MS)

    async def _read(self) -> int:
        """The revision it was read at."""
        items, revision = await scan(self.kv, DATANODES, deadline_ms=self.deadline_ms)
        self._set(_places(items))
        return revision

    def _take(self, watched: Watched) -> None:
        places = dict(self._places)
        for event in watched.events:
            if event.value is None:
                places.pop(event.key.removeprefix(DATANODES.start).decode("latin-1"), None)
            else:
                revision = watched.revision
                places |= _places([KeyValue(event.key, event.value, revision, revision)])
        self._set(places)

    def _set(self, places: Mapping[str, NodePlace]) -> None:
        self._places = places
        addresses = {node: places[node].address for node in places}
        if addresses != self._known:
            self._known = addresses


def _places(items: Iterable[KeyValue]) -> dict[str, NodePlace]:
    """Returns the places of the nodes that can be read, by node id."""
    nodes = (row.value for row in readable(NodeKey, NodeRecord, items, skip_silently))
    return {node.node_id: NodePlace(node.address, node.zone) for node in nodes}
