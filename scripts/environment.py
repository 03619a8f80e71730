"""The virtual environment: exactly what a lock says, or built again from nothing."""

import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metasrv.host.tool_search import output_of
from scripts import apt, children

RUN_LOCK = "requirements.lock"
DEV_LOCK = "requirements-dev.lock"  # holds all of RUN_LOCK too
BUILD_LOCK = "requirements-build.lock"  # what builds the packages that come as source only
STAMP = "metasrv-stamp.json"  # written last: a .venv without it was cut short, and is not trusted
LAUNCHER = "#!{python}\nimport sys\n\nfrom metasrv.cli.main import main\n\nsys.exit(main())\n"


def ensure(root: Path, venv: Path, lock: str) -> None:
    """Make `venv` hold `lock`. Raises Failed; a second run goes on."""
    log = root / ".run" / "logs" / "bootstrap.log"
    want = _want(root, venv, lock)
    have = _read_stamp(venv)
    if have is None or have["python"] != want["python"] or have["home"] != want["home"]:
        _create(root, venv, log)
    elif have.get(lock) == want[lock] and have["build"] == want["build"]:
        say("python", f".venv is up to date (Python {want['python']})")
        return
    (venv / STAMP).unlink(missing_ok=True)
    _install(root, venv, lock, log)
    _link(root, venv)
    write_whole(venv / STAMP, json.dumps(want, indent=2, sort_keys=True) + "\n")


def say(step: str, text: str) -> None:
    print(f"{step:9} {text}", flush=True)


@contextmanager
def saying(step: str, text: str) -> Iterator[None]:
    """One line for a step that takes a while: what it does now, then that it is done."""
    print(f"{step:9} {text} ... ", end="", flush=True)
    yield
    print("done", flush=True)


def write_whole(path: Path, text: str) -> None:
    """Readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


def _create(root: Path, venv: Path, log: Path) -> None:
    if not _can_make_venv() and apt.may_install():
        _install_venv(root)
    with saying("python", f"making .venv with Python {platform.python_version()}"):
        if venv.exists():
            shutil.rmtree(venv)
        try:
            children.must([sys.executable, "-m", "venv", str(venv)], cwd=root, log=log)
        except children.Failed as error:
            told = f"{error.told}\nfix: apt-get install python3-venv"
            raise children.Failed(["python3", "-m", "venv"], error.code, told) from error


def _can_make_venv() -> bool:
    """Debian has the module `venv` in Python itself, and what it needs in another package."""
    return bool(output_of([sys.executable, "-c", "import ensurepip, venv; print(True)"]))


def _install_venv(root: Path) -> None:
    """Installs Debian's package of `venv`. The step that needs the package reports a failure."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    with saying("python", f"asking apt for {package}"):
        apt.install(root, [package], lambda: bool(apt.candidate(package)))


def _install(root: Path, venv: Path, lock: str, log: Path) -> None:
    packages = sum(line[:1].isalnum() for line in (root / lock).read_text().splitlines())
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    pip += ["--no-input", "--require-hashes"]
    with saying("packages", f"installing {packages} from {lock} (about a minute)"):
        children.must([*pip, "-r", BUILD_LOCK], cwd=root, log=log)
        children.must([*pip, "--no-build-isolation", "-r", lock], cwd=root, log=log)


def _link(root: Path, venv: Path) -> None:
    """Writes the two files of an editable install: the path and the command."""
    (site,) = venv.glob("lib/python*/site-packages")
    write_whole(site / "metasrv.pth", os.path.relpath(root, site) + "\n")
    command = venv / "bin" / "metasrv"
    write_whole(command, LAUNCHER.format(python=venv / "bin" / "python"))
    command.chmod(0o755)
    say("command", ".venv/bin/metasrv")


def _want(root: Path, venv: Path, lock: str) -> dict[str, str]:
    """Returns the stamp of an environment with *lock*; the larger lock includes the smaller."""
    locks = [RUN_LOCK, DEV_LOCK] if lock == DEV_LOCK else [RUN_LOCK]
    hashes = {name: _sha256(root / name) for name in locks}
    version, build = platform.python_version(), _sha256(root / BUILD_LOCK)
    return {"python": version, "home": str(venv), "build": build, **hashes}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_stamp(venv: Path) -> dict[str, str] | None:
    """None: there is no environment that can be trusted or even run."""
    if not (venv / "bin" / "python").exists():  # the Python that it links to is gone
        return None
    try:
        found = json.loads((venv / STAMP).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return (
        found if isinstance(found, dict) and {"python", "home", "build"} <= found.keys() else None
    )
