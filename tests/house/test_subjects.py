"""Commit subjects: which are refused, and which commits of a clone are looked at."""

import subprocess
from pathlib import Path

import pytest

from scripts.documents.subjects import CHARS_MAX, SELF, checked_subjects, faults

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *WHO, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, subject: str) -> None:
    git(folder, "commit", "--allow-empty", "-m", subject)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A commit, the one that adds the check, and two behind it."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "Long ago there were sentences that ended with a full stop.")
    file = folder / SELF
    file.parent.mkdir(parents=True)
    file.write_text("")
    git(folder, "add", ".")
    commit(folder, "scripts: subjects of commits are checked")
    commit(folder, "keys: a second one")
    commit(folder, "keys: a third one")
    return folder


@pytest.mark.parametrize(
    "subject",
    [
        "keys: a batch says why it was refused",
        "metasrv_base/wire: a field",
        "Add a field",
        "x: " + "y" * (CHARS_MAX - 3),
    ],
)
def test_given_a_subject_of_the_form_then_it_has_no_fault(subject: str) -> None:
    assert not list(faults(subject))


@pytest.mark.parametrize(
    "subject",
    [
        "x: " + "y" * (CHARS_MAX - 2),
        "keys: a full stop.",
        "no part and no sentence",
        "keys:no space",
        "Added a field",
        "Fixing a field",
        "",
    ],
)
def test_given_a_subject_of_another_form_then_it_has_one_fault(subject: str) -> None:
    assert len(list(faults(subject))) == 1


def test_given_a_clone_when_looked_at_then_commits_behind_the_check_are(
    origin: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", str(origin), "whole")

    assert checked_subjects(tmp_path / "whole") == ["keys: a third one", "keys: a second one"]


@pytest.mark.parametrize(("depth", "subjects"), [(1, []), (2, ["keys: a third one"])])
def test_given_a_shallow_clone_when_looked_at_then_commits_behind_its_oldest_are(
    origin: Path, tmp_path: Path, depth: int, subjects: list[str]
) -> None:
    git(tmp_path, "clone", "-q", f"--depth={depth}", origin.as_uri(), "shallow")

    assert checked_subjects(tmp_path / "shallow") == subjects


def test_given_no_repository_when_looked_at_then_no_subject_is(tmp_path: Path) -> None:
    assert checked_subjects(tmp_path) == []
