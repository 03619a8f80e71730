"""Nodes that take requests and answer none, as a process that is stopped, or behind a network that
is cut in one direction. Their heartbeats come as long as they live."""

import asyncio
from dataclasses import dataclass, field

import httpx
import pytest

from tests.fakes.wire import NodeWire, Sent, silently


@dataclass
class HungNodes:
    """Nodes that hang, and the requests that they have taken."""

    nodes: set[str]
    only: bytes = b""
    """A part of the requests that are not answered; empty: none is."""
    taken: list[tuple[NodeWire, Sent]] = field(default_factory=list)
    """Requests that arrived, in order."""

    def hangs(self, sent: Sent) -> bool:
        return sent.node in self.nodes and self.only in sent.body

    async def wake(self) -> None:
        """The nodes carry out what they have taken, of which nobody hears an answer any more."""
        self.nodes.clear()
        for wire, sent in self.taken:
            await silently(lambda wire=wire, sent=sent: wire._arrives(sent))  # type: ignore[misc]
        self.taken.clear()


def hang(monkeypatch: pytest.MonkeyPatch, *nodes: str, only: bytes = b"") -> HungNodes:
    """*nodes* hang from now on."""
    arrives, hung = NodeWire._arrives, HungNodes({*nodes}, only)

    async def hanging(wire: NodeWire, sent: Sent) -> httpx.Response:
        if hung.hangs(sent):
            hung.taken.append((wire, sent))
            await asyncio.Event().wait()
        return await arrives(wire, sent)

    monkeypatch.setattr(NodeWire, "_arrives", hanging)
    return hung
