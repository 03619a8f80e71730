"""Reports of regions in heartbeats: of all, or of those that changed since the leader kept one.

An idle region costs the leader nothing: neither its statistics nor its grant travel again. The
report that the leader has is known by the sequence of a heartbeat that it answered; where it has
another report than we think, the digest tells it, and it asks for a whole one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from metasrv_base.wire.node.nodes import (
    Grant,
    HeartbeatAnswer,
    RegionColumns,
    RegionStat,
    digest_of,
)

Held = tuple[int, int]
"""Region id and epoch."""


class ReportFacts(TypedDict):
    """Fields of a HeartbeatRequest."""

    regions: RegionColumns
    changes_since: NotRequired[int]
    gone: NotRequired[list[str]]
    digest: NotRequired[str]
    granted_by: NotRequired[int]


@dataclass(frozen=True, slots=True)
class _Report:
    """The regions of one heartbeat."""

    sequence: int
    regions: Mapping[str, RegionStat]
    digest: int | None
    """Computed with the first changes; None: not yet."""


@dataclass(slots=True)
class NodeReports:
    """Changed by the heartbeat task alone."""

    _sent: _Report | None = None
    _kept: _Report | None = None
    """The newest that the leader has said that it keeps."""
    _granted_by: int | None = None
    """The sequence of the newest answer that named what it granted."""
    _grants: tuple[Held, ...] = ()
    is_wanted: bool = False
    """Whether the leader waits for a whole report."""

    def facts(self, sequence: int, stats: Iterable[RegionStat]) -> ReportFacts:
        """The report of heartbeat *sequence*."""
        regions = {stat.region_id: stat for stat in stats}
        self.is_wanted = False
        kept = self._kept
        if kept is None:
            self._sent = _Report(sequence, regions, None)
            return ReportFacts(regions=RegionColumns.of(regions.values()))
        digest = digest_of(kept.regions.values()) if kept.digest is None else kept.digest
        changed = [stat for id, stat in regions.items() if _differs(stat, kept.regions.get(id))]
        gone = [id for id in kept.regions if id not in regions]
        olds = [kept.regions[stat.region_id] for stat in changed if stat.region_id in kept.regions]
        ended = [kept.regions[id] for id in gone]
        digest ^= digest_of(olds) ^ digest_of(ended) ^ digest_of(changed)
        self._sent = _Report(sequence, regions, digest)
        facts = ReportFacts(
            regions=RegionColumns.of(changed),
            changes_since=kept.sequence,
            gone=gone,
            digest=f"{digest:016x}",
        )
        if self._granted_by is not None:
            facts["granted_by"] = self._granted_by
        return facts

    def answered(self, answer: HeartbeatAnswer) -> Sequence[Held]:
        """Notes the answer to the heartbeat that was sent last. Returns what it grants."""
        sent, self.is_wanted = self._sent, answer.wants_whole
        if answer.wants_whole or not answer.is_kept or sent is None:
            self._kept = self._granted_by = None
        else:
            assert sent.sequence == answer.sequence
            self._kept = sent
        if answer.renews is not None:
            return self._grants if answer.renews == self._granted_by else ()
        self._grants = tuple(map(_held, answer.grants))
        if answer.is_kept:
            self._granted_by = answer.sequence
        return self._grants

    def begin_anew(self) -> None:
        """The next report is a whole one: another leader may be asked, or another cluster."""
        self._kept = self._granted_by = None


def _held(grant: Grant) -> Held:
    return int(grant.region_id), grant.epoch


def _differs(stat: RegionStat, before: RegionStat | None) -> bool:
    """Compares fields without the models' own way, which takes ten times as long."""
    return before is None or stat.__dict__ != before.__dict__
