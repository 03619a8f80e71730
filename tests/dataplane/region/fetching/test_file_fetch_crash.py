"""A copy that dies at any step of a fetch, or its power fails, has what it had or what it took."""

import copy as copying
from itertools import count

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.fetching import file_fetch
from dataplane.region.fetching.file_fetch import FileFetch
from dataplane.region.following.copy_region import CopyRegion, StreamedRecords
from metasrv_base.errors import Corrupt, MetaError
from tests.dataplane.region.fetching.fetching import begun, fetched, flushed, receive, written
from tests.dataplane.region.following.stream import copy_at, leader, promoted, sent
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, PowerLoss
from tests.dataplane.region.rig import REGION_ID, B, Contents, contents, place


class Scene:
    """A leader with three files and a log; a learner with two records of before they were
    written."""

    def __init__(self) -> None:
        self.region = leader(MemoryDisk(MemoryStore()))
        self.store = MemoryStore()
        disk = MemoryDisk(self.store)
        disk.make_folder("/disk")
        behind = copy_at(disk)
        written(self.region, 0, 2)
        behind.take(sent(self.region, 0, common=1))
        behind.close()
        for first in (2, 5, 8):
            flushed(self.region, first, first + 3)
        written(self.region, 11, 13)
        self.rows = contents(self.region)

    def live(self, life: Life, told: list[int]) -> None:
        """Follows, fetches and follows again. *told*: what the copy has acknowledged."""
        following = CopyRegion(place(life.disk, B), REGION_ID)
        told.append(following.take(sent(self.region, 2, common=11)))
        if following.needs_files is not None:
            fetched(self.region, following)
        told.append(following.take(sent(self.region, following.durable.sequence, common=13)))
        if following.maintenance is not None:
            following.maintenance.collect()


def wrong(scene: Scene, device: str) -> str | None:
    """The first life after which the copy lacks what it has acknowledged, or cannot go on; None:
    there is none."""
    for end_at in count(1):
        life, told = Life(store := copying.deepcopy(scene.store), end_at), list[int]()
        try:
            scene.live(life, told)
        except PowerLoss:
            store.crash(*DEVICES[device])
        else:
            return None if end_at > 60 else "too few operations were tried"
        if fault := _fault(scene, store, max(told, default=2)):
            return f"{fault}, after operation {end_at}"
    raise AssertionError("count() has no end")


def _fault(scene: Scene, store: MemoryStore, least: int) -> str | None:
    disk = MemoryDisk(store)
    try:
        again = CopyRegion(place(disk, B), REGION_ID)
        if again.durable.sequence < least:
            return f"{again.durable.sequence} of {least} records are left"
        rows = _promoted(copying.deepcopy(store))
        expected = set(sorted(scene.rows)[: again.durable.sequence])
        if rows.keys() != expected:
            return f"promoted, it has {len(rows)} rows of {len(expected)}"
        again.take(sent(scene.region, again.durable.sequence, common=13))
        if again.needs_files is not None:
            fetched(scene.region, again)
        if again.take(sent(scene.region, again.durable.sequence, common=13)) != 13:
            return "it does not catch up"
        return None if promoted(again, 2) == scene.rows else "rows differ"
    except MetaError as error:
        return f"{error.code}: {error}"


def _promoted(store: MemoryStore) -> Contents:
    return promoted(CopyRegion(place(MemoryDisk(store), B), REGION_ID), 2)


@pytest.mark.parametrize("device", [FAST])
def test_given_a_copy_that_dies_anywhere_in_a_fetch_then_it_has_what_it_acknowledged(
    device: str,
) -> None:
    assert wrong(Scene(), device) is None


@pytest.mark.slow
@pytest.mark.parametrize("device", sorted(DEVICES.keys() - {FAST}))
def test_given_any_device_when_a_copy_dies_anywhere_in_a_fetch_then_it_has_what_it_acknowledged(
    device: str,
) -> None:
    assert wrong(Scene(), device) is None


def _installs_at_once(patch: pytest.MonkeyPatch) -> None:
    """The manifest names files before their names are durable."""
    patch.setattr(FileFetch, "sync", lambda self: None)


def _never_synced(patch: pytest.MonkeyPatch) -> None:
    """A file gets its name before its bytes are on stable storage."""
    finish = file_fetch.ArrivingData.finish

    def unsynced(self: file_fetch.ArrivingData) -> None:
        assert self._file is not None
        self._file.sync = lambda: None  # type: ignore[method-assign]
        finish(self)

    patch.setattr(file_fetch.ArrivingData, "finish", unsynced)


def _counts_before_files(patch: pytest.MonkeyPatch) -> None:
    """A learner answers with what the files will have, before it has them."""
    take = CopyRegion.take

    def early(self: CopyRegion, records: StreamedRecords) -> int:
        return max(take(self, records), records.history.base.sequence)

    patch.setattr(CopyRegion, "take", early)


def _never_verified(patch: pytest.MonkeyPatch) -> None:
    """A file is taken as it came."""
    patch.setattr(file_fetch, "_must_be", lambda file, size, crc32: None)


PLANTED = {
    "files that are named before their names are synced": _installs_at_once,
    "files that are named before they are synced": _never_synced,
    "a learner that counts before it has the files": _counts_before_files,
    "files that are not verified": _never_verified,
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_a_copy_fetches_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    PLANTED[bug](monkeypatch)

    assert takes_damage(scene) or any(wrong(scene, device) for device in DEVICES)


def takes_damage(scene: Scene) -> bool:
    """Whether a copy installs a file of which a byte was changed on its way."""
    disk = MemoryDisk(copying.deepcopy(scene.store))
    following = CopyRegion(place(disk, B), REGION_ID)
    fetch = begun(scene.region, following)
    try:
        for number in fetch.missing:
            receive(scene.region, fetch, number, lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    except Corrupt:
        return False
    following.install(fetch)
    return True


def test_given_no_bug_then_no_damage_is_taken() -> None:
    assert not takes_damage(Scene())
