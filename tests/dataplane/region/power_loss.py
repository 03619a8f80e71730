"""Lives of a region that lose power before any operation on its files."""

import copy
from collections.abc import Callable, Iterator
from itertools import count

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Unknown
from tests.dataplane.region.rig import Contents


class PowerLoss(Exception):
    """The process ends here; nothing of it runs after this."""


class Life:
    """One life of a node, ended before its `end_at`-th operation; 0: not ended."""

    def __init__(self, store: MemoryStore, end_at: int) -> None:
        self.operations = 0
        self.acknowledged: Contents = {}
        self.floors: list[int] = []
        self.created = False
        self._end_at = end_at
        self.disk = MemoryDisk(store, self._hook)

    def _hook(self, operation: str, path: str) -> None:
        self.operations += 1
        if self.operations == self._end_at:
            raise PowerLoss(operation, path)


class FailingSync:
    """A disk whose *fails_at*-th sync fails, of a file or of a folder; 0: none. It goes on then."""

    def __init__(self, store: MemoryStore, fails_at: int) -> None:
        self.syncs = 0
        self._fails_at = fails_at
        self.disk = MemoryDisk(store, self._hook)

    def _hook(self, operation: str, path: str) -> None:
        self.syncs += operation in ("sync", "sync_file", "sync_folder")
        if operation.startswith("sync") and self.syncs == self._fails_at:
            raise Unknown("outcome-unknown", path=path, errno="EIO")


def cut_short(
    made: MemoryStore, device: str, act: Callable[[Life], object]
) -> Iterator[tuple[Life, MemoryStore]]:
    """Each life over what was *made* that loses its power before another operation of *act*, and
    what the device has then."""
    for end_at in count(1):
        life = Life(store := copy.deepcopy(made), end_at)
        try:
            act(life)
        except PowerLoss:
            store.crash(*DEVICES[device])
        else:
            return
        yield life, store


FAST = "keeps a part"


DEVICES: dict[str, tuple[int, bool, int | None]] = {
    "loses all": (0, False, None),
    "keeps names": (0, True, None),
    "keeps a part": (70, True, None),
    "tears a write": (0, True, 1),
    "tears another, and keeps no names": (0, False, 2),
}


"""Arguments of MemoryStore.crash."""
