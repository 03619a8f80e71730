"""Nodes that may still believe that they hold a region: the leader's side of region leases (P4).

Pure: times are arguments, in monotonic milliseconds of this server. A node counts its lease from
before it sent a heartbeat; we count from when we send the answer, which is later. So a lease that
we take for ended has ended there too, even with clocks that drift apart by DRIFT.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from metasrv_base.concurrency.turns import Turns

DRIFT = 0.05  # clock rates differ by less; docs/guarantees.md: W = 1.05 L + 1 s
SLACK_MS = 1_000


def wait_ms(lease_ms: int) -> int:
    """W: after this long without a grant, nobody holds a lease of *lease_ms*."""
    return int(lease_ms * (1 + DRIFT)) + SLACK_MS


@dataclass(slots=True)
class LeaseTable:
    """The grants of one term. What an earlier leader granted is unknown: it counts as granted by
    us until election TTL + W after our election."""

    lease_ms: int
    election_ttl_ms: int
    elected_at_ms: int
    _granted: dict[str, dict[str, int]] = field(default_factory=dict)
    """Node -> region id -> when an answer that grants it was last sent."""
    _last: dict[str, int] = field(default_factory=dict)
    """Node -> when one that grants it anything was."""
    _renewals: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Node -> (since, when): what was granted to it since then was granted once more at that
    time."""

    @property
    def quiet_until_ms(self) -> int:
        """The time until which a predecessor's grants may be alive: nothing is taken over (G33)."""
        return self.elected_at_ms + self.election_ttl_ms + wait_ms(self.lease_ms)

    def granted(self, node: str, region_ids: Sequence[str], now_ms: int) -> None:
        """Call before the answer is sent."""
        if region_ids:
            self._granted.setdefault(node, {}).update(dict.fromkeys(region_ids, now_ms))
            self._last[node] = now_ms

    def renew(self, node: str, since_ms: int, now_ms: int) -> bool:
        """Grants everything again that was granted to *node* since *since_ms*. Costs nothing, as
        long as *since_ms* is the same. Call before the answer is sent.

        False: those grants may have ended, and are perhaps forgotten here. Nothing is granted then.
        """
        renewal = self._renewals.get(node)
        is_same = renewal is not None and renewal[0] == since_ms
        last_ms = renewal[1] if renewal is not None and is_same else since_ms
        if now_ms - last_ms >= wait_ms(self.lease_ms):
            return False
        if not is_same:
            self._fold(node)
        self._renewals[node] = since_ms, now_ms
        self._last[node] = now_ms
        return True

    def free_at_ms(self, node: str, region_ids: Sequence[str]) -> int:
        """The time from which no lease of *node* on any of *region_ids* can be alive."""
        granted = self._granted.get(node, {})
        last = [
            self._last_sent(node, granted[region_id])
            for region_id in region_ids
            if region_id in granted
        ]
        ends = [sent + wait_ms(self.lease_ms) for sent in last]
        return max([self.quiet_until_ms, *ends])

    def node_free_at_ms(self, node: str) -> int:
        """The time from which no lease of *node* at all can be alive. Every tick asks: it reads no
        region."""
        last = self._last.get(node)
        ends = [] if last is None else [last + wait_ms(self.lease_ms)]
        return max([self.quiet_until_ms, *ends])

    def forget(self, now_ms: int) -> Turns[None]:
        """Drops what has ended, so that the book stays as small as the cluster: one node a turn."""
        ended = now_ms - wait_ms(self.lease_ms)
        for node in tuple(self._granted):
            self._fold(node)
            left = {region: sent for region, sent in self._granted[node].items() if sent > ended}
            if left:
                self._granted[node] = left
            else:
                del self._granted[node]
            yield

    def _last_sent(self, node: str, sent_ms: int) -> int:
        """When an answer was last sent that grants *node* what one of *sent_ms* granted."""
        renewal = self._renewals.get(node)
        if renewal is None or sent_ms < renewal[0]:
            return sent_ms
        return max(sent_ms, renewal[1])

    def _fold(self, node: str) -> None:
        """Notes a renewal at each region that it renewed."""
        granted = self._granted.get(node, {})
        for region_id, sent_ms in granted.items():
            granted[region_id] = self._last_sent(node, sent_ms)
