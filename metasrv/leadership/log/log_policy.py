"""Decides when a snapshot of the catalog is due, and where the log may begin. Pure functions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from keys.model.snapshot.snapshots import SnapshotRef, SnapshotVersion

LOG_BYTES_MIN = 1 << 20
"""Log above the newest snapshot below which none is due: a server reads it in a tenth of a
second."""


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """The history that is kept for reads as of a version: what is older than `age_ms` may go, and
    the oldest goes earlier beyond `bytes_max`."""

    age_ms: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class LogPin:
    """A version that somebody needs: the log keeps each update above it."""

    what: str
    """Kind and id of who needs it, e.g. `holder fe-1`."""
    version: int
    since_ms: int
    """Wall clock."""
    reason: str
    expires_at_ms: int | None = None
    """Wall clock; None: when what needs it is over."""


def is_due(snapshots: SnapshotVersion | None, log_bytes: int) -> bool:
    """Whether the log above the newest snapshot is as large as that snapshot.

    So what is written for snapshots is never more than what is written for the log.
    """
    newest_bytes = 0 if snapshots is None else snapshots.newest.size_bytes
    return log_bytes >= max(LOG_BYTES_MIN, newest_bytes)


def floor_for(
    kept: Sequence[SnapshotRef], limits: HistoryLimits, pins: Collection[LogPin], now_ms: int
) -> int:
    """The version of the oldest snapshot of *kept* that must stay; *kept* is not empty."""
    last = len(kept) - 1
    index = max((i for i, ref in enumerate(kept) if ref.at_ms <= now_ms - limits.age_ms), default=0)
    while index < last and history_bytes(kept[index:]) > limits.bytes_max:
        index += 1
    if pins:
        pinned = min(pin.version for pin in pins)
        index = min(index, max((i for i, r in enumerate(kept) if r.version <= pinned), default=0))
    return kept[index].version


def history_bytes(kept: Sequence[SnapshotRef]) -> int:
    """The stored bytes of snapshots, and of the log between the first and the last of them."""
    return sum(ref.size_bytes for ref in kept) + sum(ref.log_bytes for ref in kept[1:])
