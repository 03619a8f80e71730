"""Judges leaders that copies of their regions report as silent. Pure.

A leader with copies is not waited for by the detector (docs/protocols.md P4.5): a copy reports it
after SILENCE_MS, this server asks the leader itself and another copy at once, for PROBE_MS, and
promotes. That is safe at any time, since whoever is promoted waits for its own promise. So all
that is judged here is whether it helps: a leader that is heard by metasrv or by another copy goes
on, and the copy that does not hear it leaves its set. A leader that none of its copies has heard
for CUT_OFF_MS can do nothing, although metasrv hears it: one of them is promoted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from keys.model.tables import CopyRole, RegionRoute
from metasrv.nodes.guard import guard
from metasrv.nodes.status import Hold, NodeStatus

PROBE_MS = 500
"""The time for which the leader and the other copy are waited for. A process that has ended refuses
the connection at once."""
CUT_OFF_MS = 3_000
"""The silence after which a leader that answers metasrv is taken for cut off from its copies. A
process that has stood still for a moment answers too, and asks its copies again at once."""
STALLED_MS = 2 * PROBE_MS
"""A probe that took longer says that this server stood still, and nothing of the nodes (G35)."""


class ProbeResult(StrEnum):
    """The answer of a node that was asked."""

    NOT_ASKED = "not asked"
    """There is no other copy to ask."""
    UNANSWERED = "unanswered"
    HEARS = "hears"
    """The leader answered; the other copy hears it."""
    SILENT = "silent"
    """The other copy does not hear the leader either."""


class SilenceVerdict(StrEnum):
    OVER = "over"
    """Another leads these regions, or the copy that reports is in no set of them."""
    HELD = "held"
    """The fault is more likely this server's, or maintenance holds all failovers."""
    ALIVE = "alive"
    """Somebody hears the leader."""
    PROMOTE = "promote"


@dataclass(frozen=True, slots=True)
class SilenceProbe:
    """The answers of one look."""

    leader: ProbeResult
    other: ProbeResult
    took_ms: int = 0
    silent_ms: int = 0
    """The time for which neither of the two copies has heard the leader."""
    copies: frozenset[str] = frozenset()
    """The nodes of these copies: the reporter, and the one that was asked."""


def silent_regions(
    regions: Iterable[tuple[RegionRoute, int]], leader: str, reporter: str
) -> tuple[RegionRoute, ...]:
    """The reported regions, each with the epoch at which it was reported, that *leader* still leads
    at that epoch, with the reporter in the set."""
    return tuple(
        region
        for region, epoch in regions
        if (region.leader, region.epoch) == (leader, epoch)
        and not region.unverified
        and any(copy.node == reporter and copy.role is CopyRole.IN_SYNC for copy in region.copies)
    )


def other_copy(regions: Sequence[RegionRoute], reporter: str, alive: Collection[str]) -> str | None:
    """The living node that has most copies in the sets of these regions, beside the reporter. None:
    there is no third copy."""
    counts = Counter(
        copy.node
        for region in regions
        for copy in region.copies
        if copy.role is CopyRole.IN_SYNC and copy.node != reporter and copy.node in alive
    )
    return min(counts, key=lambda node: (-counts[node], node), default=None)


def judge_silence(
    regions: Sequence[RegionRoute], probe: SilenceProbe, hold: Hold | None
) -> tuple[SilenceVerdict, Sequence[RegionRoute]]:
    """Decides over the regions of `silent_regions`. *hold*: of `silence_hold`. Returns also the
    regions of which a copy is to be promoted."""
    if not regions:
        return SilenceVerdict.OVER, ()
    if hold is not None or probe.took_ms > STALLED_MS:
        return SilenceVerdict.HELD, ()
    if ProbeResult.HEARS not in (probe.leader, probe.other):
        return SilenceVerdict.PROMOTE, regions
    cut_off = [region for region in regions if _is_cut_off(region, probe)]
    return (SilenceVerdict.PROMOTE, cut_off) if cut_off else (SilenceVerdict.ALIVE, ())


def _is_cut_off(region: RegionRoute, probe: SilenceProbe) -> bool:
    """Whether no copy of the set hears the leader. The two that were asked are all others."""
    others = set(region.in_sync) - {region.leader}
    return (
        probe.other is ProbeResult.SILENT
        and probe.silent_ms >= CUT_OFF_MS
        and others == probe.copies
    )


def silence_hold(
    statuses: Collection[NodeStatus],
    leading: Collection[str],
    unanswered: Collection[str],
    maintenance: Hold | None,
) -> Hold | None:
    """Returns a reason to promote nobody: maintenance, or that too many nodes look dead, those that
    did not answer now included (G35). The grace of a new leader of metasrv is none: it is about
    leases, which such regions do not use."""
    return maintenance or guard(statuses, leading, unanswered)
