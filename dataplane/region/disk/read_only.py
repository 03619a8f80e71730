"""A disk that can be looked at and not touched: what an inspector is given."""

from dataclasses import dataclass
from typing import NoReturn

from dataplane.region.disk.disk import AppendFile, Disk


@dataclass(frozen=True, slots=True)
class ReadOnlyDisk:
    """Implements dataplane.region.disk.disk.Disk; whatever would change something is a bug."""

    disk: Disk

    def read(self, path: str, offset: int, length: int) -> bytes:
        return self.disk.read(path, offset, length)

    def size(self, path: str) -> int:
        return self.disk.size(path)

    def walk(self, folder: str) -> list[str]:
        return self.disk.walk(folder)

    def list(self, folder: str) -> list[str]:
        return self.disk.list(folder)

    def create(self, path: str) -> AppendFile:
        _refuse(path)

    def copy(self, source: str, target: str) -> int:
        _refuse(target)

    def sync_file(self, path: str) -> None:
        _refuse(path)

    def sync_folder(self, path: str) -> None:
        _refuse(path)

    def rename(self, source: str, target: str) -> None:
        _refuse(source)

    def move_folder(self, source: str, target: str) -> None:
        _refuse(source)

    def remove(self, path: str) -> None:
        _refuse(path)

    def make_folder(self, path: str) -> None:
        _refuse(path)

    def remove_tree(self, path: str) -> None:
        _refuse(path)


def _refuse(path: str) -> NoReturn:
    raise AssertionError(f"an inspector would have changed {path}")
