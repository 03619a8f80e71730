"""Checks whether a folder may be the storage root of a node: P5 needs a linearizable one."""

import os
from dataclasses import dataclass
from pathlib import Path

# Kinds of file system that one kernel orders and that keep what was synced.
LOCAL = frozenset(
    {"ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "overlay", "apfs", "jfs"}
)
# One kernel orders these too, but a sync of a folder that has failed is forgotten (decision 0419).
FORGETFUL = frozenset({"ext2"})
MEMORY = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True)
class RootVerdict:
    """Whether a root qualifies, and the reason in words."""

    ok: bool
    why: str


def root_verdict(kind: str | None) -> RootVerdict:
    """Returns the verdict on a folder by its kind of file system. An unknown kind does not qualify:
    two nodes may see it differently."""
    if kind is None:
        return RootVerdict(False, "the kind of its file system is not known")
    if kind in LOCAL:
        return RootVerdict(True, f"{kind}: one host's disk")
    if kind in MEMORY:
        return RootVerdict(True, f"{kind}: for tests only, it does not outlive the host")
    if kind in FORGETFUL:
        why = f"{kind}: without a journal, names whose write has failed are taken for written"
        return RootVerdict(False, why)
    return RootVerdict(False, f"{kind}: not known to show every node the same files at once (P5)")


def kind_of(folder: str, mountinfo: str) -> str | None:
    """The kind of the file system that holds `folder`, an absolute path without links.

    `mountinfo` is the text of /proc/self/mountinfo (proc(5)); the last of the longest mount points
    that contain the folder is the one in effect.
    """
    best: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or not kinds:
            continue
        point = fields[4].replace("\\040", " ").rstrip("/")
        holds = folder == point or folder.startswith(point + "/")
        if holds and (best is None or len(point) >= best[0]):
            best = (len(point), kinds[0])
    return best[1] if best else None


def try_out(folder: Path) -> RootVerdict:
    """Do there what a takeover does: create exclusively, sync the file, sync the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".probe-{os.getpid()}"
    try:
        opened = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(opened, b"probe")
            os.fsync(opened)
        finally:
            os.close(opened)
        folder_opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(folder_opened)
        finally:
            os.close(folder_opened)
    except OSError as error:
        return RootVerdict(False, f"cannot create and sync a file there: {error.strerror}")
    finally:
        probe.unlink(missing_ok=True)
    return RootVerdict(True, "files can be created exclusively and synced")
