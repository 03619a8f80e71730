"""Reads the machine's cores, memory and disk space, and the folders of regions on its disk."""

import asyncio
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.nodes import NodeResources

MEMORY = Path("/proc/meminfo")


class LocalMachine:
    """This machine, read in a thread: the `Machine` port of `heartbeat.py`. Raises Unavailable for
    what cannot be read now: no descriptor is free, a mount is away."""

    def __init__(self, root: str) -> None:
        self._root = root

    async def resources(self) -> NodeResources:
        return await asyncio.to_thread(read_resources, self._root)

    async def folders(self) -> Sequence[str]:
        return await asyncio.to_thread(read_folders, self._root)


def read_resources(root: str) -> NodeResources:
    """Blocking, for milliseconds."""
    with _translated(str(MEMORY)):
        memory = _memory_bytes(MEMORY.read_text())
    with _translated(root):
        disk = shutil.disk_usage(root)
    return NodeResources(
        cpu_cores=os.cpu_count() or 1,
        memory_bytes=memory.get("MemTotal", 0),
        memory_free_bytes=memory.get("MemAvailable", 0),
        disk_bytes=disk.total,
        disk_free_bytes=disk.free,
    )


def _memory_bytes(text: str) -> dict[str, int]:
    """Lines as `MemTotal:  16314564 kB`."""
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdecimal():
            sizes[name] = int(words[0]) * 1024
    return sizes


def read_folders(root: str) -> tuple[str, ...]:
    """Names of the folders of regions under *root*; none where it is new."""
    folder = os.path.join(root, "regions")
    with _translated(folder):
        try:
            return tuple(os.listdir(folder))
        except FileNotFoundError:
            return ()


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Unlike a region's file, what is missing is not lost: it is read again at the next beat."""
    try:
        yield
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, "EIO")
        raise Unavailable("not-ready", path=path, errno=code) from error
