"""File systems that may hold a region."""

from pathlib import Path

import pytest

from metasrv.host.storage_roots import kind_of, root_verdict, try_out

MOUNTS = """22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:26 / /mnt/share rw shared:2 - nfs4 host:/share rw
31 22 0:27 / /mnt/with\\040space rw - xfs /dev/sdb rw
32 30 0:28 / /mnt/share/fast rw - tmpfs none rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/data", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/b", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/share/fast/x", "tmpfs"),
        ("/mnt/with space/x", "xfs"),
    ],
)
def test_given_mounts_when_asked_then_the_innermost_one_counts(folder: str, kind: str) -> None:
    assert kind_of(folder, MOUNTS) == kind


@pytest.mark.parametrize(
    ("kind", "ok"),
    [("ext4", True), ("tmpfs", True), ("nfs4", False), ("fuse.sshfs", False), (None, False)],
)
def test_given_a_file_system_when_judged_then_only_one_hosts_disk_qualifies(
    kind: str | None, ok: bool
) -> None:
    assert root_verdict(kind).ok is ok


def test_given_a_file_system_without_a_journal_when_judged_then_it_says_what_it_forgets() -> None:
    verdict = root_verdict("ext2")

    assert not verdict.ok
    assert "journal" in verdict.why


def test_given_a_folder_when_tried_then_nothing_is_left_there(tmp_path: Path) -> None:
    assert try_out(tmp_path / "root").ok
    assert list((tmp_path / "root").iterdir()) == []


def test_given_a_folder_that_takes_no_file_when_tried_then_it_says_why() -> None:
    verdict = try_out(Path("/proc/self"))

    assert not verdict.ok
    assert "cannot create" in verdict.why
