"""The environment is what the lock says: kept when it is, and built again when it is not."""

import os
import sys
from pathlib import Path

import pytest

from scripts import environment
from scripts.environment import BUILD_LOCK, DEV_LOCK, RUN_LOCK, STAMP, ensure

pytestmark = pytest.mark.packaging

UP_TO_DATE = "is up to date"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose locks hold nothing, so that nothing is fetched."""
    for lock in (BUILD_LOCK, RUN_LOCK, DEV_LOCK):
        (tmp_path / lock).write_text(f"# {lock}\n")
    return tmp_path


def test_given_a_fresh_checkout_when_set_up_again_and_again_then_each_run_goes_on(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    venv = root / ".venv"

    def said_by(lock: str) -> str:
        ensure(root, venv, lock)
        return capsys.readouterr().out

    assert "making .venv" in said_by(DEV_LOCK)
    assert (venv / "bin" / "metasrv").stat().st_mode & 0o111
    (pth,) = venv.glob("lib/python*/site-packages/metasrv.pth")
    assert (pth.parent / pth.read_text().strip()).resolve() == root
    assert UP_TO_DATE in said_by(DEV_LOCK)
    assert UP_TO_DATE in said_by(RUN_LOCK)  # the larger lock holds the smaller

    (root / RUN_LOCK).write_text("# another\n")
    said = said_by(RUN_LOCK)
    assert "installing" in said
    assert "making .venv" not in said
    assert "installing" in said_by(DEV_LOCK)

    (venv / STAMP).unlink()  # as after Ctrl-C during an installation
    assert "making .venv" in said_by(RUN_LOCK)
    assert {one.name for one in root.iterdir()} <= {".venv", ".run", BUILD_LOCK, RUN_LOCK, DEV_LOCK}


def test_given_a_file_when_written_whole_then_no_part_of_it_is_left(tmp_path: Path) -> None:
    environment.write_whole(tmp_path / "deep" / "file", "text")

    assert [one.name for one in (tmp_path / "deep").iterdir()] == ["file"]


PYTHON = """#!/bin/sh
# As Debian has it without python3-venv.
case "$*" in
    *ensurepip*) test -e {installed} && echo True ;;
    *) mkdir -p "$3" ;;
esac
"""
APT_GET = """#!/bin/sh
echo "$@" >> {said}
case "$1" in install) touch {installed} ;; esac
"""
APT_CACHE = """#!/bin/sh
echo "  Candidate: 3.11.2-6"
"""


@pytest.mark.parametrize("may_install", [True, False])
def test_given_a_python_without_venv_when_set_up_then_apt_is_asked_where_we_may(
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    may_install: bool,
) -> None:
    there = tmp_path_factory.mktemp("bin")
    said, installed = there / "said", there / "installed"
    scripts = {"python": PYTHON, "apt-get": APT_GET, "apt-cache": APT_CACHE}
    for name, text in scripts.items():
        (there / name).write_text(text.format(installed=installed, said=said))
        (there / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(there / "python"))
    monkeypatch.setattr(os, "geteuid", lambda: 0 if may_install else 1000)
    monkeypatch.setenv("PATH", f"{there}:{os.environ['PATH']}")

    environment._create(root, root / ".venv", root / "log")

    major, minor = sys.version_info[:2]
    wanted = f"install -y --no-install-recommends python{major}.{minor}-venv"
    assert (said.read_text().splitlines() if said.exists() else []) == [wanted] * may_install
