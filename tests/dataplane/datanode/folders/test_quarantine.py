"""Folders in quarantine: what goes there, what comes back, and a power loss anywhere."""

import posixpath
from collections.abc import Callable

import pytest

from dataplane.datanode.folders.inventory import inventory
from dataplane.datanode.folders.quarantine import Quarantine, parsed
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.format.names import Opening
from metasrv_base.errors import Conflict, NotFound, Refused
from tests.dataplane.datanode.folders.folders import PowerLossError, created, put, store_of

REGION, LAST = 1024 << 32 | 1, (1 << 63) - 1
ROOT, FENCE = f"/n/regions/{REGION}-1", Opening(1, 1)
HELD = f"/n/quarantine/{REGION}-1@7"
FILES = ["data/", "data/1-1-1.parquet", "fence-1-1", "manifest-1-1-1"]


def made() -> MemoryStore:
    media = MemoryStore()
    disk = MemoryDisk(media)
    created(store_of(disk), ROOT, REGION)
    put(disk, f"{ROOT}/data/1-1-1.parquet")
    return media


def files(disk: Disk, root: str) -> list[str] | None:
    """None: there is no such folder."""
    try:
        return disk.walk(root)
    except NotFound:
        return None


def quarantined() -> MemoryStore:
    media = made()
    Quarantine(MemoryDisk(media), "/n").take(ROOT, REGION, FENCE, 7)
    return media


def test_given_a_folder_when_taken_then_it_is_whole_in_quarantine_and_told_apart() -> None:
    disk = MemoryDisk(quarantined())

    Quarantine(disk, "/n").take(ROOT, REGION, FENCE, 8)
    page = inventory(disk, "/n", 0, LAST)
    below = inventory(disk, "/n", 0, REGION - 1)

    assert (files(disk, ROOT), page.roots, page.following) == (None, [], None)
    (held,) = page.quarantined
    assert (held.path, held.at_ms, held.folder.root) == (HELD, 7, ROOT)
    assert (held.folder.region_id, held.folder.fence_epoch) == (str(REGION), 1)
    assert (held.folder.opener, held.folder.manifest_epoch) == (ROOT, 1)
    sizes = [disk.size(f"{HELD}/{name}") for name in disk.walk(HELD) if name[-1] != "/"]
    assert held.bytes == sum(sizes) > len(b"precious")
    assert below.quarantined == []


@pytest.mark.parametrize(
    "root",
    [
        f"/n/regions/{REGION + 1}-1",
        f"/n/regions/{REGION}",
        f"/n/regions/deep/{REGION}-1",
        f"/n/{REGION}-1",
        f"/m/regions/{REGION}-1",
        "/n/regions",
        "/n/node",
    ],
)
def test_given_a_folder_that_is_not_the_regions_when_taken_or_deleted_then_refused(
    root: str,
) -> None:
    disk = MemoryDisk(made())
    put(disk, f"{root}/fence-1-1")
    before = disk.walk("/n"), files(disk, root)

    with pytest.raises(Refused):
        Quarantine(disk, "/n").take(root, REGION, FENCE, 7)
    with pytest.raises(Refused):
        Quarantine(disk, "/n").delete(root, REGION, 7)

    assert (disk.walk("/n"), files(disk, root)) == before
    assert not Quarantine(disk, "/n").put_back(root)


@pytest.mark.parametrize("fence", [Opening(1, 2), Opening(2, 1), Opening(1, 3), Opening(3, 1)])
def test_given_another_fence_than_was_judged_when_taken_then_it_stays(fence: Opening) -> None:
    """It was raised since: somebody opens the region over this folder."""
    disk = MemoryDisk(made())
    put(disk, f"{ROOT}/fence-2-2")

    with pytest.raises(Conflict, match="stale-epoch") as refusal:
        Quarantine(disk, "/n").take(ROOT, REGION, fence, 7)

    assert refusal.value.facts["found"] == "fence-2-2"
    assert files(disk, ROOT) is not None


def test_given_a_stranger_when_taken_then_refused_as_its_deletion_would_be() -> None:
    disk = MemoryDisk(made())
    put(disk, f"{ROOT}/core.12345")

    with pytest.raises(Refused) as refusal:
        Quarantine(disk, "/n").take(ROOT, REGION, FENCE, 7)

    assert refusal.value.facts["strangers"] == ["core.12345"]
    assert files(disk, ROOT) is not None


def test_given_a_folder_without_a_fence_when_taken_then_it_stays() -> None:
    disk = MemoryDisk(MemoryStore())
    put(disk, f"{ROOT}/data/1-1-1.parquet")

    with pytest.raises(Conflict, match="stale-epoch"):
        Quarantine(disk, "/n").take(ROOT, REGION, FENCE, 7)

    assert files(disk, ROOT) is not None


def test_given_folders_in_quarantine_when_put_back_then_the_last_comes_and_none_is_replaced() -> (
    None
):
    disk = MemoryDisk(quarantined())
    quarantine = Quarantine(disk, "/n")
    created(store_of(disk), ROOT, REGION)

    assert not quarantine.put_back(ROOT)
    quarantine.take(ROOT, REGION, FENCE, 30)
    assert quarantine.put_back(ROOT)

    assert files(disk, ROOT) == [name for name in FILES if not name.startswith("data/")]
    assert disk.list("/n/quarantine") == [posixpath.basename(HELD)]


def test_given_names_that_no_order_makes_when_listed_then_left_alone() -> None:
    for name in (f"{REGION}-1", f"{REGION}-1@x", f"{REGION}-1@07", "x-1@7", f"{REGION}@7"):
        assert parsed(name) is None
    disk = MemoryDisk(made())
    put(disk, "/n/quarantine/photos/1.jpg")
    put(disk, f"/n/quarantine/{REGION}-1@07/fence-1-1")

    page = inventory(disk, "/n", 0, LAST)

    assert (len(page.roots), page.quarantined) == (1, [])


def test_given_a_stranger_in_quarantine_when_deleted_then_refused_and_all_stays() -> None:
    disk = MemoryDisk(quarantined())
    put(disk, f"{HELD}/notes.txt")
    before = disk.walk(HELD)

    with pytest.raises(Refused) as refusal:
        Quarantine(disk, "/n").delete(ROOT, REGION, 7)

    assert refusal.value.facts["strangers"] == ["notes.txt"]
    assert disk.walk(HELD) == before


def test_given_a_folder_that_was_put_back_when_its_deletion_comes_then_nothing_is_deleted() -> None:
    disk = MemoryDisk(quarantined())
    quarantine = Quarantine(disk, "/n")
    assert quarantine.put_back(ROOT)

    quarantine.delete(ROOT, REGION, 7)
    quarantine.delete(ROOT, REGION, 6)

    assert files(disk, ROOT) == FILES


def take(disk: Disk) -> None:
    Quarantine(disk, "/n").take(ROOT, REGION, FENCE, 7)


def put_back(disk: Disk) -> None:
    Quarantine(disk, "/n").put_back(ROOT)


def delete(disk: Disk) -> None:
    Quarantine(disk, "/n").delete(ROOT, REGION, 7)


@pytest.mark.parametrize("keeps_names", [False, True])
@pytest.mark.parametrize(
    ("begin", "act"), [(made, take), (quarantined, put_back)], ids=["taken", "put back"]
)
def test_given_a_power_loss_anywhere_when_moved_then_it_is_whole_in_one_place_and_moves_on(
    begin: Callable[[], MemoryStore], act: Callable[[Disk], None], keeps_names: bool
) -> None:
    places = set[bool]()
    for media in lives(begin, act, keeps_names):
        disk = MemoryDisk(media)
        at, held = files(disk, ROOT), files(disk, HELD)
        assert (at is None) != (held is None)
        assert (at or held) == FILES
        places.add(at is None)
        act(disk)
        media.crash()
        moved = files(disk, HELD) if act is take else files(disk, ROOT)
        assert moved == FILES
    assert places == {True, False}


@pytest.mark.parametrize("keeps_names", [False, True])
def test_given_a_power_loss_anywhere_when_deleted_then_it_is_told_until_it_is_gone(
    keeps_names: bool,
) -> None:
    for media in lives(quarantined, delete, keeps_names):
        disk = MemoryDisk(media)
        left = files(disk, HELD)
        page = inventory(disk, "/n", 0, LAST)
        assert [held.at_ms for held in page.quarantined] == ([7] if left is not None else [])
        assert page.roots == []
        delete(disk)
        media.crash()
        assert files(disk, HELD) is None


def lives(
    begin: Callable[[], MemoryStore], act: Callable[[Disk], None], keeps_names: bool
) -> list[MemoryStore]:
    """The medium after a power loss before each operation of *act*, and after all of them."""
    media: list[MemoryStore] = []
    while True:
        left = len(media)

        def lose(operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise PowerLossError

        store, is_whole = begin(), True
        try:
            act(MemoryDisk(store, lose))
        except PowerLossError:
            is_whole = False
        store.crash(kept_names=keeps_names)
        media.append(store)
        if is_whole:
            assert len(media) > 4
            return media
