"""Where each node is reached, for answers that show routes, as any server knows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from base.clock import Clock
from base.errors import Unavailable
from keys.cluster import Node, NodeKey
from keys.kv import Kv
from keys.scan import scan
from keys.value import decode

KEPT_MS = 1_000  # a node that moved is found this late by clients that ask; they then ask again


@dataclass(slots=True)
class Addresses:
    """Registrations are few and change rarely: read whole, kept for a moment."""

    kv: Kv
    clock: Clock
    deadline_ms: int
    _known: Mapping[str, str] = field(default_factory=dict)
    _read_at_ms: int | None = None

    async def known(self) -> Mapping[str, str]:
        """Node id -> base URL. While the store is silent: as last read."""
        now = self.clock.mono_ms()
        if self._read_at_ms is not None and now - self._read_at_ms < KEPT_MS:
            return self._known
        try:
            items, _ = await scan(self.kv, NodeKey.under("datanode"), deadline_ms=self.deadline_ms)
        except Unavailable:
            return self._known
        nodes = [decode(Node, item.value, key=item.key.decode()) for item in items]
        known = {node.node_id: node.address for node in nodes}
        if known != self._known:  # what was made of the same addresses stays true
            self._known = known
        self._read_at_ms = now
        return self._known
