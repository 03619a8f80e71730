"""One process per node root: the kernel's lock on a file in it, gone with the process."""

import fcntl
import os
from types import TracebackType
from typing import Self

from metasrv_base.errors import Conflict

FILE = "lock"


class RootLock:
    """A context: held from entry to exit, whatever ends the process in between."""

    def __init__(self, root: str) -> None:
        self._folder = f"{root}/node"
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Raises Conflict if another process holds it."""
        os.makedirs(self._folder, mode=0o750, exist_ok=True)
        _sync_path(self._folder)
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
        self._descriptor = os.open(f"{self._folder}/{FILE}", flags, 0o640)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise Conflict("object-locked", what="the node's root", root=self._folder) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)


def _sync_path(folder: str) -> None:
    """Syncs the folders above *folder* up to their mount: a process before us may have made them,
    and died before their names were on stable storage. Where this process may only pass through it
    has made nothing."""
    while not os.path.ismount(folder):
        folder = os.path.dirname(folder)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError:
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
