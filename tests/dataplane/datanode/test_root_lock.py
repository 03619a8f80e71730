"""A node's root: one process at a time, and folders whose names survive a power loss."""

import os
from pathlib import Path

import pytest

from dataplane.datanode.root_lock import RootLock
from metasrv_base.errors import Conflict


def test_given_a_locked_root_when_another_process_comes_then_it_is_refused(tmp_path: Path) -> None:
    with RootLock(str(tmp_path)), pytest.raises(Conflict, match="object-locked"):
        RootLock(str(tmp_path)).__enter__()

    with RootLock(str(tmp_path)):
        assert (tmp_path / "node" / "lock").exists()


@pytest.mark.parametrize("made_before", ["", "var", "var/lib/node-1"])
def test_given_a_new_root_when_locked_then_every_folder_above_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_before: str
) -> None:
    """Also where a process before made a part of it and died before it synced anything."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    root = tmp_path / "var" / "lib" / "node-1"
    (tmp_path / made_before).mkdir(parents=True, exist_ok=True)

    with RootLock(str(root)):
        pass

    above = {str(folder) for folder in (root, *root.parents) if folder.is_relative_to(tmp_path)}
    assert above <= set(synced)
