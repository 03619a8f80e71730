"""Leaders of this node's copies that send no request any more (docs/protocols.md P4.5). Pure.

A leader asks each node every ASK_MS. Silence is a node's, not a region's: it is reported with all
regions that this node follows there. Times are milliseconds of CLOCK_BOOTTIME.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SILENCE_MS = 1_000
"""The silence that is reported: two requests are missing."""
WATCH_MS = 100
"""The interval at which silence is looked for."""
FOLLOW_MS = 500
"""The interval at which the copies of this node are looked through."""
REPORT_AGAIN_MS = 1_000
"""Between two reports of one leader, while it stays silent."""


class FollowedHere(NamedTuple):
    """A copy of this node that is in the set of its region."""

    region_id: int
    epoch: int
    leader: str
    """The node that leads at that epoch."""


@dataclass(frozen=True, slots=True)
class SilentLeader:
    """A leader to report, with the regions that this node follows there."""

    leader: str
    silent_ms: int
    regions: Sequence[FollowedHere]


@dataclass(slots=True)
class LeaderSilence:
    """Invariant: only leaders of regions that are followed now are remembered."""

    _heard_ms: dict[str, int] = field(default_factory=dict)
    """Leader -> when it last sent a request, or was first followed."""
    _reported_ms: dict[str, int] = field(default_factory=dict)
    _regions: Mapping[str, Sequence[FollowedHere]] = field(default_factory=dict)

    def note_request(self, leader: str, now_ms: int) -> None:
        """A leader has asked for promises, or has sent records. One that leads nothing here is
        passed over."""
        if leader in self._heard_ms:
            self._heard_ms[leader] = now_ms
            self._reported_ms.pop(leader, None)

    def silent_ms(self, leader: str, now_ms: int) -> int | None:
        """The time since a leader was heard; None: nothing of it is followed here."""
        heard_ms = self._heard_ms.get(leader)
        return None if heard_ms is None else now_ms - heard_ms

    def forgive(self, stalled_ms: int, now_ms: int) -> None:
        """Excuses a time in which this process did not run: nobody could be heard. A leader may
        have been heard since it goes on."""
        for leader, heard_ms in self._heard_ms.items():
            self._heard_ms[leader] = min(heard_ms + stalled_ms, now_ms)

    def follow(self, followed: Iterable[FollowedHere], now_ms: int) -> None:
        """Takes the copies that there are now. A leader that is new here counts as heard just
        now."""
        regions = defaultdict[str, list[FollowedHere]](list)
        for each in followed:
            regions[each.leader].append(each)
        self._regions = regions
        self._heard_ms = {leader: self._heard_ms.get(leader, now_ms) for leader in regions}
        self._reported_ms = {
            leader: at_ms for leader, at_ms in self._reported_ms.items() if leader in regions
        }

    def due(self, now_ms: int) -> list[SilentLeader]:
        """The leaders to report now."""
        silent = list[SilentLeader]()
        for leader in sorted(self._heard_ms):
            silent_ms = now_ms - self._heard_ms[leader]
            reported_ms = self._reported_ms.get(leader)
            is_again = reported_ms is not None and now_ms - reported_ms < REPORT_AGAIN_MS
            if silent_ms >= SILENCE_MS and not is_again:
                self._reported_ms[leader] = now_ms
                silent.append(SilentLeader(leader, silent_ms, self._regions[leader]))
        return silent
