"""The steps that make a checkout runnable, in order, each a no-op when it is done already."""

import fcntl
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from metasrv.host.toolchain import toolchain_file
from scripts import children, environment, tools

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"


@dataclass(frozen=True)
class Target:
    """The lock that a target needs, and the command that replaces this process after set-up."""

    lock: str
    command: tuple[str, ...]


SEARCH = (
    "--hypothesis-profile=search",
    "--timeout=0",
    "tests/keys/store/differential/test_differential.py",
)
KILLS = ("--timeout=0", "tests/killed/test_killed_servers.py")
LONG_FORMS = ("sim", "drawn", "long")
TARGETS = {
    "setup": Target(environment.RUN_LOCK, ()),
    "demo": Target(environment.RUN_LOCK, ("metasrv", "demo")),
    "test": Target(environment.DEV_LOCK, ("python", "-m", "scripts.run_tests")),
    "test-fast": Target(environment.DEV_LOCK, ("python", "-m", "scripts.run_tests", "fast")),
    "test-long": Target(environment.DEV_LOCK, ("python", "-m", "scripts.run_tests", *LONG_FORMS)),
    "check": Target(environment.DEV_LOCK, ("python", "-m", "scripts.check")),
    "chaos": Target(environment.DEV_LOCK, ("python", "-m", "scripts.chaos")),
    "search": Target(environment.DEV_LOCK, ("pytest", *SEARCH)),
    "sim": Target(environment.DEV_LOCK, ("python", "-m", "scripts.sim")),
    "kills": Target(environment.DEV_LOCK, ("pytest", *KILLS)),
    "bench": Target(environment.DEV_LOCK, ("python", "-m", "benchmarks")),
    "generate": Target(environment.DEV_LOCK, ("python", "-m", "scripts.generate")),
}


def run(args: Sequence[str]) -> int:
    name, rest = (args[0], args[1:]) if args else ("setup", ())
    if name not in TARGETS:
        print(f"usage: bootstrap.py [{'|'.join(TARGETS)}] [ARGS]", file=sys.stderr)
        return 2
    target = TARGETS[name]
    try:
        with children.ended_by_signals(), _alone(ROOT / ".run" / "bootstrap.lock"):
            set_up(target.lock)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    except children.Failed as error:
        print(f"\n{error.told}\nbootstrap: {error}", file=sys.stderr)
        return 1
    if target.command:
        _become([str(VENV / "bin" / target.command[0]), *target.command[1:], *rest])
    return 0


def set_up(lock: str) -> None:
    """Raises Failed with what the failing step said. Java and etcd that are missing are told by
    the line of their step and by `metasrv doctor`; what needs them fails there, by name.
    """
    environment.ensure(ROOT, VENV, lock)
    chosen = tools.choose(ROOT, VENV)
    path = toolchain_file(ROOT)
    text = chosen.to_json()
    if not path.exists() or path.read_text() != text:
        environment.write_whole(path, text)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One bootstrap at a time in a checkout; a second one waits, and then finds all done."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _become(argv: list[str]) -> None:
    os.chdir(ROOT)
    sys.stdout.flush()
    os.execv(argv[0], argv)
