"""The folder of a playground: one playground at a time, and a reset that deletes only its own."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metasrv.playground.document import NAME
from metasrv.playground.holder import LOCK, record_of, this_process
from metasrv_base.errors import Conflict, Refused

LOG = Path("logs/playground.log")
"""Output of a playground in the background, below its folder."""
OURS = re.compile(r"etcd|logs|m-\d+|dn-\d+|fe-\d+")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Locks the folder, and makes it if need be; removes the ready file of an earlier run, and
    records this process. Raises Conflict `object-locked` while another playground runs in it;
    Refused for a folder that cannot be written."""
    opened = _opened(folder)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise Conflict("object-locked", resource=str(folder), holder="a playground") from None
    try:
        (folder / NAME).unlink(missing_ok=True)  # first: a record beside it would vouch for it
        os.ftruncate(opened, 0)
        os.pwrite(opened, record_of(this_process()), 0)
        yield
    finally:
        os.ftruncate(opened, 0)
        os.close(opened)


def _opened(folder: Path) -> int:
    """The lock file. Raises Refused for a folder that cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        path = f"--data-dir {folder}"
        raise Refused("invalid-request", path=path, reason=error.strerror) from error


def cleared(folder: Path) -> None:
    """Deletes the data of an earlier run, but for LOG: this process may be writing to it."""
    log = folder / LOG
    for path in folder.iterdir():
        if not OURS.fullmatch(path.name) or not path.is_dir() or path.is_symlink():
            continue
        if path != log.parent:
            shutil.rmtree(path)
            continue
        for file in path.iterdir():
            if file != log:
                file.unlink()
