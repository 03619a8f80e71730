"""Requests to nodes that are under way, each given up once its node cannot be waited for any more.

A process that is stopped, or a machine that is cut off, takes a request and answers nothing: the
connection stands, and only the deadline of the request would end it. The leader knows better
sooner: from the heartbeats that it is dead, or from a registration that another process runs.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from metasrv.nodes.node_liveness import NodeLiveness
from metasrv.nodes.status import GONE, NodeEntry, state_at
from metasrv_base.errors import NotFound, Unknown

LOOK_MS = 1_000
"""The time between two looks. A node that is dead already has as long to answer: one of which only
the heartbeats are lost does."""
BACK = "it was dead, and is back"


class NodeGoneError(Unknown):
    """The node was given up while a request to it was under way, which it perhaps carries out."""


@dataclass(slots=True)
class RequestsInFlight:
    book: NodeLiveness
    _until: dict[asyncio.Timeout, NodeEntry] = field(default_factory=dict)
    """The end of each request, and the process of the node that it was sent to."""
    _some: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while there are any."""

    @asynccontextmanager
    async def to(self, node: str) -> AsyncIterator[None]:
        """Raises NotFound for a node that is not registered; NodeGoneError within, when it is
        dead, is removed, or another process of it has registered."""
        entry = self.book.entry(node)
        until = asyncio.timeout(None)
        try:
            async with until:
                self._until[until] = entry
                self._some.set()
                try:
                    yield
                finally:
                    del self._until[until]
        except TimeoutError as error:
            if not until.expired():
                raise
            reason = self._why(entry) or BACK
            raise NodeGoneError(what="node", name=node, reason=reason) from error

    async def watch(self) -> None:
        """Looks at the nodes while there are any requests, until the task is cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(LOOK_MS / 1_000)
            self.look()

    def look(self) -> None:
        """Gives up what no answer is to be waited for."""
        if not self._until:
            self._some.clear()
        for until, entry in self._until.items():
            if self._why(entry) is not None and not until.expired():
                until.reschedule(asyncio.get_running_loop().time())

    def _why(self, entry: NodeEntry) -> str | None:
        """The reason for which no answer is waited for; None: one may come."""
        try:
            current = self.book.entry(entry.node.node_id)
        except NotFound:
            return "it was removed"
        if current is not entry:
            return "another process of it has registered"
        return "it is dead" if state_at(entry, self.book.clock.mono_ms()) in GONE else None
