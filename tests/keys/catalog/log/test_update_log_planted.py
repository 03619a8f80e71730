"""Bugs planted in the log, its snapshots and its compaction: drawn lives find each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from keys.catalog import snapshot_writing
from keys.catalog.catalog import Catalog
from keys.catalog.log.handlers import HandlerQueue, LogEvent, SnapshotEntry
from keys.catalog.log.loading import LogEnd
from keys.catalog.log.update_log import UpdateLog
from keys.catalog.snapshot_codec import parts_of
from keys.catalog.snapshot_loading import load_snapshot
from keys.model.snapshot.snapshots import SnapshotRef
from metasrv.leadership.log import log_policy
from metasrv.leadership.log.log_policy import HistoryLimits, LogPin
from tests.keys.catalog.log.log_lives import lives
from tests.keys.commit.leading_committer import DEADLINE_MS

LIVES = 40
_FLOOR_FOR = log_policy.floor_for
_SHOWN: list[Catalog] = []


def without_the_last(catalog: Catalog) -> Any:
    """Parts of the catalog that the snapshot before was asked for."""
    before = _SHOWN[-1] if _SHOWN and _SHOWN[-1].version < catalog.version else Catalog()
    _SHOWN.append(catalog)
    stamped = replace(
        before, version=catalog.version, revision=catalog.revision, at_ms=catalog.at_ms
    )
    return parts_of(stamped)


async def only_when_empty(self: UpdateLog, head: LogEnd) -> None:
    """A follower that has anything at all reads on from there."""
    snapshots, revision = head.snapshots, head.revision
    self._note(snapshots)
    if snapshots is not None and not self.taken:
        catalog = await load_snapshot(
            self._kv, snapshots.newest, deadline_ms=DEADLINE_MS, revision=revision
        )
        self._put(SnapshotEntry(catalog), catalog.revision)


async def each_time(self: UpdateLog, head: LogEnd) -> None:
    """Takes the newest snapshot with each load, also where the log goes on."""
    snapshots, revision = head.snapshots, head.revision
    self._note(snapshots)
    if snapshots is not None:
        catalog = await load_snapshot(
            self._kv, snapshots.newest, deadline_ms=DEADLINE_MS, revision=revision
        )
        self._put(SnapshotEntry(catalog), catalog.revision)


def of_no_pin(
    kept: Sequence[SnapshotRef], limits: HistoryLimits, pins: Collection[LogPin], now_ms: int
) -> int:
    return _FLOOR_FOR(kept, limits, (), now_ms)


def counts_first(self: HandlerQueue, event: LogEvent, revision: int) -> None:
    """Handlers run behind the version's back."""
    counted = self._counted
    _PUT(self, event, revision)
    if len(self):
        counted(event, revision)
        self._counted = lambda event, revision: None


_PUT = HandlerQueue.put


@dataclass(frozen=True)
class Plant:
    owner: Any
    name: str
    bug: Any
    found: str
    """Words of the check that finds it."""


PLANTED: dict[str, Plant] = {
    "a snapshot that lacks its last update": Plant(
        snapshot_writing, "parts_of", without_the_last, "is no version that was"
    ),
    "a follower that is two snapshots behind": Plant(
        UpdateLog, "_jump", only_when_empty, "the follower has ended: Corrupt"
    ),
    "a snapshot given to handlers twice": Plant(UpdateLog, "_jump", each_time, "twice"),
    "compaction above a pin": Plant(log_policy, "floor_for", of_no_pin, "is below the log"),
    "a version counts before its handlers": Plant(
        HandlerQueue, "put", counts_first, "before its handler ended"
    ),
}


def test_given_sound_code_when_logs_are_cut_under_a_follower_then_nothing_is_wrong() -> None:
    faults, jumps = [], 0
    for seed, found, jumped in lives(LIVES):
        faults += [f"life {seed}: {fault}" for fault in found]
        jumps += jumped

    assert faults == []
    assert jumps > LIVES // 4, "few of them had to take a snapshot"


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_logs_are_cut_under_a_follower_then_a_life_finds_it(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = PLANTED[bug]
    _SHOWN.clear()
    monkeypatch.setattr(plant.owner, plant.name, plant.bug)

    seen = next((text for _, found, _ in lives(LIVES) for text in found if plant.found in text), "")

    assert seen, f"no life has found: {bug}"
