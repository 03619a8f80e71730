"""The order in which the copies of a region are asked for rows of a declared age.

Copies in the zone of this frontend come first, the leader among them, in an order that is drawn for
each read: so reads are spread over the copies. A node that did not answer rests for a while.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dataplane.frontend.catalog.catalog import CopyNode
from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.rng import Rng

COPY_S_MAX = 2.0
"""The time for which a copy is waited for, in s, before another is asked: a process that is stopped
keeps its connections open."""
REST_S = 5.0
"""The time in s for which a node is not asked that did not answer."""
ASKED_MAX = 2
"""Copies that one attempt asks before it asks the leader."""
DEFAULT_ZONE = "default"


def _uncounted(_outcome: str) -> None:
    """Counts nothing."""


@dataclass(slots=True)
class NearCopies:
    """One event loop owns it."""

    zone: str = DEFAULT_ZONE
    """The zone of this frontend."""
    count: Callable[[str], None] = _uncounted
    """Counts what copies answered, by outcome."""
    _until: dict[str, float] = field(default_factory=dict)
    """Address -> the time until which it rests, in seconds of the loop's clock."""

    def order(self, copies: Sequence[CopyNode], now: float, rng: Rng) -> list[CopyNode]:
        """Returns the copies to ask, the first before the others; none: the leader is to be asked.
        *copies*: of all copies, the leader's first."""
        self._until = {address: until for address, until in self._until.items() if until > now}
        awake = [copy for copy in copies if copy.address not in self._until]
        drawn = {copy: (copy.zone != self.zone, rng.random()) for copy in awake}
        return sorted(awake, key=lambda copy: drawn[copy])[:ASKED_MAX]

    def answered(self, copy: CopyNode) -> None:
        self.count("leader" if copy.is_leader else "copy")

    def failed(self, copy: CopyNode, error: MetaError | TimeoutError, now: float) -> None:
        """Notes an error. A copy that says how old its rows are is there, and is asked again."""
        if isinstance(error, MetaError) and "max_lag_ms" in error.facts:
            self.count("too-old")
            return
        self.count("failed")
        if isinstance(error, TimeoutError | Unavailable | Unknown):
            self._until[copy.address] = now + REST_S
