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
        raise unusable(folder, error) from error


def unusable(folder: Path, error: OSError) -> Refused:
    """The error of a folder that cannot be made or written."""
    return Refused("invalid-request", path=f"--data-dir {folder}", reason=error.strerror)


def has_data(folder: Path) -> bool:
    """Whether a reset would delete anything."""
    return folder.is_dir() and any(map(_is_data, folder.iterdir()))


def cleared(folder: Path) -> None:
    """Deletes the data of an earlier run, but for LOG: this process may be writing to it."""
    log = folder / LOG
    for path in folder.iterdir():
        if not _is_data(path):
            continue
        if path != log.parent:
            shutil.rmtree(path)
            continue
        for file in path.iterdir():
            if file != log:
                file.unlink()


def _is_data(path: Path) -> bool:
    return bool(OURS.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()
