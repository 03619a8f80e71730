"""Files copied by `cp -r`, and rewritten by pyarrow, each synced: peers of moves and fetches."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from metasrv_base.clock import SystemClock

MIB = 1 << 20


def linked_files(files: Path, folder: Path) -> Path:
    """The same files under other names: the node goes on, and deletes what it has merged."""
    for path in [path for path in everything(files) if path.is_file()]:
        target = folder / path.relative_to(files)
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            target.hardlink_to(path)
    return folder


def baselines(files: Path, folder: Path, is_cold: bool) -> dict[str, float]:
    """Returns the throughput of reading and copying the files, in MiB/s."""
    copy = folder / "copy"
    size = sum(path.stat().st_size for path in everything(files) if path.is_file())
    parquet = [path for path in everything(files) if path.suffix == ".parquet"]
    found: dict[str, float] = {}
    if is_cold:
        forget(files)
    clock = SystemClock()
    begun = clock.mono_ms()
    subprocess.run(["cp", "-r", str(files), str(copy)], check=True)
    for path in everything(copy):
        synced(path)
    found["cp -r and fsync"] = size / MIB * 1000 / (clock.mono_ms() - begun)
    shutil.rmtree(copy)
    if is_cold:
        forget(files)
    begun = clock.mono_ms()
    for number, path in enumerate(parquet):
        target = folder / f"rewritten-{number}.parquet"
        pq.write_table(pq.read_table(path, partitioning=None), target)
        synced(target)
        target.unlink()
    read = sum(path.stat().st_size for path in parquet)
    found["pyarrow rewrite and fsync"] = read / MIB * 1000 / max(clock.mono_ms() - begun, 1)
    return found


def everything(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")


def synced(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def forget(folder: Path) -> None:
    """Clean pages are dropped; those of a node that was killed may be dirty, so they are synced."""
    for path in everything(folder):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)
