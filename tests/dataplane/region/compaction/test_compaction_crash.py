"""A merge, stopped before any file operation, by power loss or by another leader: nothing is lost.

Deleted rows stay deleted and overwritten ones overwritten, whichever files are left.
"""

import copy
from collections.abc import Callable, Sequence

import pytest

from dataplane.region.compaction import compaction, rewrite
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine import current_manifest
from dataplane.region.engine.region import Region
from dataplane.region.files import split
from dataplane.region.format.names import Opening
from dataplane.region.format.parts import PartSize
from dataplane.region.manifests import housekeeping
from dataplane.region.manifests.manifest import FileEntry, Manifest, publish_manifest
from dataplane.region.place import OpenOrder
from metasrv_base.errors import Conflict, MetaError
from tests.dataplane.region.borrowed import bring
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, PowerLoss
from tests.dataplane.region.rig import SPEC, A, B, C, Contents, Row, contents, order, place, write
from tests.dataplane.region.schedule import interleave

NEVER = 0
EXPECTED: Contents = {b"a": (2, "new"), b"c": (3, None), b"logged": (4, None)}


def made() -> MemoryStore:
    """Four files of four rows, of which one was overwritten and one deleted; one row in the log."""
    store = MemoryStore()
    region = Region.create(place(MemoryDisk(store)), SPEC, epoch=1)
    groups: list[dict[bytes, Row | None]] = [
        {b"a": (1, "old"), b"b": (1, None)},
        {b"a": (2, "new")},
        {b"b": None},
        {b"c": (3, None)},
    ]
    for number, rows in enumerate(groups):
        write(region, f"s-{number}", rows)
        region.maintenance.flush()
    write(region, "s-9", {b"logged": (4, None)})
    return store


MADE = made()


def power_losses(device: str) -> int:
    """Before each operation of an opening with a merge; returns how many there are."""
    end_at = 0
    while True:
        end_at += 1
        store = copy.deepcopy(MADE)
        life = Life(store, end_at)
        try:
            Region.open(place(life.disk), order(1)).maintenance.compact()
        except PowerLoss:
            store.crash(*DEVICES[device])
        else:
            return end_at
        again = Region.open(place(MemoryDisk(store)), order(1))
        assert contents(again) == EXPECTED, end_at
        again.maintenance.compact()
        again.maintenance.collect()
        assert contents(again) == EXPECTED, end_at
        assert len(again.place.disk.list(f"{A}/data")) == len(again.manifest.files)


@pytest.mark.slow
@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
def test_given_power_loss_anywhere_in_a_merge_when_opened_then_rows_are_as_they_were(
    device: str,
) -> None:
    assert power_losses(device) > 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
def test_given_power_loss_anywhere_in_a_merge_that_writes_several_files_then_rows_are_as_they_were(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split, "ROW_GROUP", PartSize(rows=1, bytes=1))
    monkeypatch.setattr(rewrite, "groups_max", lambda columns: 1)

    assert power_losses(device) > 45, "two files more"


class Merger:
    """A leader that opens, merges, and writes; it stops when it is refused."""

    def __init__(self, name: str, root: str, how: OpenOrder) -> None:
        self.name, self.root, self.how = name, root, how
        self.acknowledged: Contents = {}
        self.refused: MetaError | None = None

    def run(self, disk: MemoryDisk) -> None:
        try:
            region = Region.open(place(disk, self.root), self.how)
            region.maintenance.compact()
            key = self.name.encode()
            write(region, self.name, {key: (7, self.name)})
            self.acknowledged[key] = (7, self.name)
        except MetaError as refusal:
            self.refused = refusal


Where = tuple[str, OpenOrder]
CASES: dict[str, tuple[Where, Where, Where]] = {
    "in place": ((A, order(2)), (A, order(3)), (A, order(4))),
    "opened twice": ((A, order(2)), (A, order(2)), (A, order(2))),
    "elsewhere": ((A, order(2)), (B, order(3, A)), (C, order(4, A, B))),
}


def rivals(case: str) -> int:
    """The old leader stops before each of its operations while the new one does all it does."""
    operations = run_rivals(case, NEVER)
    for stop in range(1, operations + 1):
        run_rivals(case, stop)
    return operations


def run_rivals(case: str, stop: int) -> int:
    """Runs two mergers against each other; returns how many operations the old one had."""
    old_at, new_at, third_at = CASES[case]
    store = copy.deepcopy(MADE)
    old, new = Merger("old", *old_at), Merger("new", *new_at)
    one, _ = interleave(store, old.run, new.run, (stop, NEVER))
    third = contents(Region.open(place(MemoryDisk(store), third_at[0]), third_at[1]))
    expected = EXPECTED | old.acknowledged | new.acknowledged
    assert expected.items() <= third.items(), stop
    assert b"b" not in third
    assert old.refused is None or old.refused.code in ("stale-epoch", "outcome-unknown")
    assert new.how.epoch == old.how.epoch or new.refused is None
    return len(one.operations)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_given_another_leader_anywhere_in_a_merge_when_it_opens_then_no_file_it_needs_is_gone(
    case: str,
) -> None:
    assert rivals(case) > 40


def test_given_a_higher_fence_when_merged_then_no_file_is_deleted() -> None:
    store = copy.deepcopy(MADE)
    old = Region.open(place(MemoryDisk(store)), order(2))
    Region.open(place(MemoryDisk(store), B), order(3, A))

    with pytest.raises(Conflict):
        old.maintenance.compact()

    assert {f"{A}/{file.name}" for file in old.manifest.files} <= store.live.keys()


# Planted bugs: each is caught by an enumeration above (docs/guarantees.md) -----------------------


def no_look(disk: Disk, root: str, mine: Opening) -> None:
    """Nobody asks whether there is a higher fence."""


def removed_first(disk: Disk, root: str, manifest: Manifest) -> None:
    """Deletes what a manifest will not name any more, and then publishes it."""
    kept = {file.name for file in manifest.files}
    for name in disk.list(f"{root}/data") if len(kept) == 1 else ():
        if f"data/{name}" not in kept:
            disk.remove(f"{root}/data/{name}")
    publish_manifest(disk, root, manifest)
    assert isinstance(disk, MemoryDisk)
    remove, live = disk.remove, disk.store.live

    def remove_what_is_left(path: str) -> None:
        if path in live:
            remove(path)

    disk.remove = remove_what_is_left  # type: ignore[method-assign]


SYNC_FOLDER = MemoryDisk.sync_folder


def data_not_synced(disk: MemoryDisk, path: str) -> None:
    if not path.endswith("/data"):
        SYNC_FOLDER(disk, path)


HIDE_NOTHING = compaction._hide_nothing


def sealed_forgotten(inputs: Sequence[FileEntry], manifest: Manifest) -> bool:
    """Ignores files that are borrowed as a log, and looks only at those borrowed as files."""
    return HIDE_NOTHING(inputs, manifest.model_copy(update={"sealed": ()}))


def deleted(*, moves: bool) -> None:
    """A row that is in the log alone, deleted and merged; *moves*: by the next leader, which has
    borrowed that log until then, and adopts it as a file afterwards."""
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "in the log", {b"c": (1, None)})
    if moves:
        region = Region.open(place(disk, B), order(2, A))
    groups: list[dict[bytes, Row | None]] = [
        {b"c": None},
        {b"d": (2, None)},
        {b"e": None},
        {b"f": None},
    ]
    for number, rows in enumerate(groups):
        write(region, f"s-{number}", rows)
        region.maintenance.flush()
    region.maintenance.compact()
    if moves:
        region.file_ingest.adopt("procedure", "attempts/p", bring(disk, region, "attempts/p"))
    assert contents(region) == {b"d": (2, None)}, "a deleted row came back"


Plant = tuple[object, str, object, Callable[[], object]]
PLANTED: dict[str, Plant] = {
    "inputs are deleted before the manifest is published": (
        current_manifest,
        "publish_manifest",
        removed_first,
        lambda: power_losses(FAST),
    ),
    "no look before inputs are deleted": (
        housekeeping,
        "look",
        no_look,
        lambda: [rivals(case) for case in CASES],
    ),
    "the folder of the output is not synced": (
        MemoryDisk,
        "sync_folder",
        data_not_synced,
        lambda: power_losses("loses all"),
    ),
    "tombstones are dropped over a borrowed log": (
        compaction,
        "_hide_nothing",
        sealed_forgotten,
        lambda: deleted(moves=True),
    ),
}


def undisturbed() -> None:
    """No power is lost, and nobody else opens the region."""
    region = Region.open(place(MemoryDisk(copy.deepcopy(MADE))), order(1))
    region.maintenance.compact()
    assert contents(region) == EXPECTED


def test_given_a_log_that_was_borrowed_when_merged_and_adopted_then_deleted_rows_stay_away() -> (
    None
):
    deleted(moves=True)


@pytest.mark.crash
@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_in_a_merge_when_enumerated_then_it_is_caught(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, planted, enumerate_all = PLANTED[bug]
    monkeypatch.setattr(where, name, planted)

    if where is compaction:
        deleted(moves=False)
    undisturbed()  # raises, if the bug shows without a fault
    with pytest.raises((AssertionError, MetaError)):
        enumerate_all()
