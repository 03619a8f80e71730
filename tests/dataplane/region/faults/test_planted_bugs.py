"""Each planted bug is caught by the enumeration that claims to find it (docs/guarantees.md)."""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.memory_disk import Inode, MemoryDisk, MemoryFile, MemoryStore
from dataplane.region.engine import current_manifest, opening, serving, takeover
from dataplane.region.engine.group import GroupRecord
from dataplane.region.engine.region import Region
from dataplane.region.engine.writer import RegionWriter
from dataplane.region.format import names
from dataplane.region.format.names import Numbered, Opening
from dataplane.region.log.sealed_log import SealedLog, seal_segment
from dataplane.region.manifests import fence, housekeeping, manifest
from dataplane.region.manifests.fence import FenceContent
from dataplane.region.manifests.manifest import Manifest, SealedEntry
from metasrv_base.errors import MetaError, Unknown
from tests.dataplane.region.engine import test_takeover
from tests.dataplane.region.faults import test_failed_sync, test_power_loss
from tests.dataplane.region.log import test_sealed_log as test_sealed_tail
from tests.dataplane.region.manifests import test_adoption as test_borrow
from tests.dataplane.region.power_loss import Life
from tests.dataplane.region.rig import REGION_ID, A, B, C, order, place
from tests.dataplane.region.takeover_rows import NEVER, UNFLUSHED

CAUGHT = (AssertionError, MetaError, pytest.fail.Exception)


def no_look(disk: Disk, root: str, mine: Opening) -> None:
    """Nobody asks whether there is a higher fence."""


_WRITE = RegionWriter._write


def looks_first(self: RegionWriter, group: GroupRecord) -> MetaError | None:
    """The fence is asked for before the append: whoever takes over in between is not seen."""
    try:
        self._serving.look()
    except MetaError:
        return Unknown()
    return _WRITE(self, group)


def removed_first(disk: Disk, root: str, current: Manifest) -> None:
    """Deletes the log segments that a manifest will make superfluous, and then publishes it."""
    for name in housekeeping.superseded(disk.list(root), current):
        disk.remove(posixpath.join(root, name))
    manifest.publish_manifest(disk, root, current)


def past_the_seal(disk: Disk, root: str, entry: SealedEntry) -> SealedLog:
    """Replays an older opening's log to its end, wherever that is by now."""
    segment = names.parse_segment(entry.name)
    assert segment is not None
    log = seal_segment(disk, root, REGION_ID, segment, is_last=True)
    return replace(log, entry=log.entry.model_copy(update={"root": entry.root}))


def no_fence_yet(disk: Disk, root: str, claim: FenceContent) -> FenceContent:
    """An opening takes a number, and tells nobody before it has read everything."""
    found = [found for found in names.fences(disk.list(root)) if found.epoch == claim.epoch]
    return claim.model_copy(
        update={"opening": max([found.number for found in found], default=0) + 1}
    )


def fenced_last(disk: Disk, root: str, current: Manifest) -> None:
    mine = FenceContent(
        region_id=current.spec.region_id,
        epoch=current.epoch,
        opening=current.opening - 1,
        root=root,
        created_ms=0,
    )
    fence.raise_own_fence(disk, root, mine)
    manifest.publish_manifest(disk, root, current)


def by_number(found: list[str]) -> list[Numbered]:
    """The manifest with the highest number is current, whoever wrote it."""
    return sorted(names.manifests(found), key=lambda each: (each.number, each))


def no_leader_is_lost(*_: object) -> None:
    """Whoever served last had nothing to say."""


def not_synced(*_: object) -> None:
    """Takes what was written to be on disk."""


SYNC = MemoryFile.sync


def log_not_synced(self: MemoryFile) -> None:
    """Skips the sync of files that are appended to; files that are written once are synced."""
    if not posixpath.basename(self._path).startswith("wal-"):
        SYNC(self)


def undisturbed(cases: Iterable[str] = test_takeover.CASES) -> None:
    """Nobody is stopped: one leader ends before the next begins."""
    for case in cases:
        test_takeover.run_case(case, (NEVER, NEVER))


def powered() -> None:
    """Every program to its end, and then its region opened again."""
    for program in test_power_loss.PROGRAMS.values():
        test_power_loss.live_on(program)


def takeovers(cases: Iterable[str] = test_takeover.CASES) -> None:
    for case in cases:
        operations, _ = test_takeover.run_case(case, (NEVER, NEVER))
        for stop in range(1, operations + 1):
            test_takeover.run_case(case, (stop, NEVER))


def unflushed() -> None:
    """Replays: those that have the most to read of an older log."""
    takeovers(case for case in test_takeover.CASES if case.startswith(UNFLUSHED))


def elsewhere() -> None:
    """Runs the takeovers into another root, which borrows from the old one."""
    takeovers(["elsewhere"])


def power_losses() -> None:
    for program in test_power_loss.PROGRAMS:
        test_power_loss.enumerate_program(program, "loses all")


def second_failover() -> None:
    disk = test_borrow.dead_leader()
    test_borrow.check_second_root_gone(disk)


def unsynced_tail() -> None:
    test_sealed_tail.test_given_an_unsynced_tail_when_sealed_and_the_power_fails_then_the_region_opens(
        test_sealed_tail.unsynced()
    )


def failed_syncs() -> None:
    test_failed_sync.fail_each_sync("loses all")


def no_sync_fails() -> None:
    """The power is lost after a life without a fault."""
    test_failed_sync.live_on("loses all", NEVER)


def all_roots_there() -> None:
    """A second failover that finds all that the first has left."""
    disk = test_borrow.dead_leader()
    Region.open(place(disk, B), order(2, A))
    Region.open(place(disk, C), order(3, A, B))


def tail_is_sealed() -> None:
    """The power stays on."""
    medium = test_sealed_tail.unsynced()
    Region.open(place(MemoryDisk(medium)), order(1))
    Region.open(place(MemoryDisk(medium)), order(1))


def alone() -> None:
    """One opening that makes a region and works on it."""
    test_power_loss.create_and_work(Life(MemoryStore(), NEVER))


RESTARTED = {"manifests by number alone"}
"""Needs no more than a second opening."""
SOUND: Mapping[Callable[[], None], Callable[[], None]] = {
    takeovers: undisturbed,
    unflushed: undisturbed,
    elsewhere: lambda: undisturbed(["elsewhere"]),
    power_losses: powered,
    second_failover: all_roots_there,
    unsynced_tail: tail_is_sealed,
    failed_syncs: no_sync_fails,
}
"""The same without a fault, where a planted bug must not show."""
Plant = tuple[ModuleType | type, str, object, Callable[[], None]]
PLANTED: dict[str, Plant] = {
    "no look after the append": (serving, "look", no_look, takeovers),
    "look before the append": (RegionWriter, "_write", looks_first, takeovers),
    "no look before deleting": (housekeeping, "look", no_look, elsewhere),
    "deleted before published": (current_manifest, "publish_manifest", removed_first, takeovers),
    "replayed past the seal": (opening, "read_sealed", past_the_seal, unflushed),
    "own fence behind the replay": (takeover, "raise_own_fence", no_fence_yet, takeovers),
    "no borrowed fence": (takeover, "raise_borrowed_fence", not_synced, elsewhere),
    "manifests by number alone": (manifest, "manifests", by_number, takeovers),
    "a lost leader is forgotten": (
        takeover,
        "_refuse_lost_leaders",
        no_leader_is_lost,
        second_failover,
    ),
    "the log is not synced": (MemoryFile, "sync", log_not_synced, power_losses),
    "folders are not synced": (MemoryDisk, "sync_folder", not_synced, power_losses),
    "sealed without a sync": (MemoryDisk, "sync_file", not_synced, unsynced_tail),
    "sealed from the cache": (Inode, "drop_cache", not_synced, failed_syncs),
}


ALSO: dict[str, tuple[ModuleType, str, object]] = {
    "look before the append": (serving, "look", no_look),
    "own fence behind the replay": (opening, "publish_manifest", fenced_last),
}
"""A second place that the same bug leaves out."""


@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_enumerated_then_it_is_caught(
    bug: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, name, planted, enumerate_all = PLANTED[bug]
    monkeypatch.setattr(where, name, planted)
    if bug in ALSO:
        monkeypatch.setattr(*ALSO[bug])
    runs: Counter[str] = Counter()
    for module, run in ((test_takeover, "run_case"), (test_power_loss, "lose_power")):
        monkeypatch.setattr(module, run, counting(getattr(module, run), runs))

    (
        alone if bug in RESTARTED else SOUND[enumerate_all]
    )()  # raises, if the bug shows without a fault
    runs.clear()
    with pytest.raises(CAUGHT) as caught:
        enumerate_all()

    with capsys.disabled():
        said = " ".join(str(caught.value).split())[:120]
        print(f"\n{bug}: run {max(1, runs.total())}: {caught.typename}: {said}", end="")
    assert "Timeout" not in said, "out of time is not caught"


def counting(run: Callable[..., Any], runs: Counter[str]) -> Callable[..., Any]:
    def counted(*args: Any) -> Any:
        runs[run.__name__] += 1
        return run(*args)

    return counted
