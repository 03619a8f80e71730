"""A node dies among ingests: a record that a copy has told is there with all its files."""

import copy as copying

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine import content
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.region import Region
from dataplane.region.fetching.file_fetch import ArrivingData
from dataplane.region.following import copy_region
from dataplane.region.following.copy_region import _Following
from dataplane.region.following.leading import lead
from dataplane.region.log.logged_change import PositionedChange
from dataplane.region.log.logged_files import LoggedFiles
from dataplane.region.place import RegionPlace
from metasrv_base.errors import MetaError
from tests.dataplane.region.fetching.ingest_lives import TINY, IngestScene, worked
from tests.dataplane.region.fetching.ingesting import ITEMS, Moment, moment, work
from tests.dataplane.region.following.stream import copy_at
from tests.dataplane.region.power_loss import FAST, Life, cut_short
from tests.dataplane.region.rig import B, order, place

pytestmark = pytest.mark.slow
SCENE = IngestScene()


@pytest.mark.parametrize("device", ["loses all", FAST])
def test_given_a_copy_that_dies_anywhere_among_ingests_then_what_it_has_told_is_there(
    device: str,
) -> None:
    assert SCENE.enumerate(device) > 150


class LeaderLife:
    """A leader that orders rows, changes and ingests; *answered* and *ordered* as items."""

    def __init__(self) -> None:
        self.answered = self.ordered = 0

    def live(self, life: Life) -> None:
        opening = lead(place(life.disk, B, limits=TINY), order(2))
        opening.count()
        for item in range(1, ITEMS + 1):
            self.ordered = item
            work(opening.region, item)
            self.answered = item
            opening.region.maintenance.collect()
            if item in (4, 8):
                opening.region.maintenance.flush()


@pytest.mark.parametrize("alone", [False, True])
def test_given_a_leader_that_dies_anywhere_then_each_ingest_is_whole_or_was_not_answered(
    *, alone: bool
) -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk")
    copy_at(disk, limits=TINY).close()
    as_led = as_leader(copying.deepcopy(store))
    lives: list[LeaderLife] = []

    def live(life: Life) -> None:
        lives.append(LeaderLife())
        lives[-1].live(life)

    cells = 0
    for _, left in cut_short(store, "loses all", live):
        whole, cells = lives[-1], cells + 1
        again = open_again(left, alone=alone)
        end = again.log_history.end
        assert whole.answered <= end <= whole.ordered
        assert moment(again) == as_led[end]
    assert cells > 100


def as_leader(store: MemoryStore) -> list[Moment]:
    opening = lead(place(MemoryDisk(store), B), order(2))
    opening.count()
    return [moment(opening.region), *worked(opening.region, 1)]


def open_again(store: MemoryStore, *, alone: bool) -> Region:
    disk = MemoryDisk(store)
    if alone:
        region = Region.open(place(disk, B), order(3))
        region.maintenance.collect()
        return region
    opening = lead(place(disk, B), order(3))
    opening.region.maintenance.collect()
    opening.count()
    return opening.region


# -- planted bugs


def acknowledges_before_it_has_files(self: _Following, record: PositionedChange) -> bool:
    return True


def never_syncs(region_place: RegionPlace, files: LoggedFiles) -> bool:
    """Files are there, and their names perhaps not after a power failure."""
    names = region_place.disk.walk(region_place.root)
    return all(entry.name in names for entry in files.entries_in(region_place.root))


FINISH = ArrivingData.finish


def named_before_synced(self: ArrivingData) -> None:
    assert self._file is not None
    self._file.sync = lambda: None  # type: ignore[method-assign]
    FINISH(self)


def collects_what_a_change_names(self: RegionContent) -> frozenset[str]:
    return self._files.unnamed


PLANTED: dict[str, list[tuple[object, str, object]]] = {
    "a copy acknowledges an ingest before its files are there": [
        (_Following, "has_files", acknowledges_before_it_has_files)
    ],
    "a copy acknowledges an ingest before its files are synced": [
        (copy_region, "are_durable", never_syncs),
        (ArrivingData, "finish", named_before_synced),
    ],
    "files that a logged change names are collected": [
        (content.RegionContent, "unnamed_files", collects_what_a_change_names)
    ],
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_copies_die_among_ingests_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where, name, planted in PLANTED[bug]:
        monkeypatch.setattr(where, name, planted)

    with pytest.raises((AssertionError, MetaError)):
        SCENE.enumerate("loses all")
