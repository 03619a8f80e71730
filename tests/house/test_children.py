"""No child outlives its caller, however the caller is ended."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from metasrv.host.tool_search import output_of
from scripts import children
from tests.processes import has_ended, is_running

ROOT = Path(__file__).parents[2]
FAMILY = ("sh", "-c", "sleep 300 & echo $!; wait")  # says the id of its own child
CALLER = """
import sys
from pathlib import Path
from scripts import children, lanes

def lane():
    yield from lanes.run(sys.argv[2:], cwd=Path("."), log=None, limit_s=300)

with children.ended_by_signals():
    if sys.argv[1] == "1":
        children.run(sys.argv[2:], cwd=Path("."))
    else:
        lanes.run_lanes(lane() for _ in range(int(sys.argv[1])))
"""


@pytest.mark.process
def test_given_a_limit_when_it_passes_then_the_whole_family_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"

    code = children.run(FAMILY, cwd=tmp_path, log=log, limit_s=3)

    assert code == 124
    assert has_ended(int(log.read_text()))


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("families", [1, 2], ids=["one", "two lanes"])
def test_given_a_caller_when_it_is_ended_then_every_family_is_gone(
    number: signal.Signals, families: int
) -> None:
    argv = [sys.executable, "-c", CALLER, str(families), *FAMILY]
    caller = subprocess.Popen(
        argv,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A shell lets what it starts in the background ignore Ctrl-C, and so would this caller.
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),
    )
    with caller:
        assert caller.stdout
        grandchildren = [int(caller.stdout.readline()) for _ in range(families)]
        assert all(is_running(one) for one in grandchildren)

        caller.send_signal(number)
        caller.wait(240)

    assert all(has_ended(one) for one in grandchildren)


class Interrupted:
    """The lock of a child; Ctrl-C comes as soon as it is taken."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def acquire(self, blocking: bool = True) -> bool:
        taken: bool = self._lock.acquire(blocking)
        signal.raise_signal(signal.SIGINT)
        return taken

    def release(self) -> None:
        self._lock.release()


@pytest.mark.process
def test_given_a_signal_when_a_child_is_looked_at_then_it_can_be_waited_for(tmp_path: Path) -> None:
    with children.begun(("sleep", "300"), cwd=tmp_path) as child:
        lock = child._waitpid_lock  # type: ignore[attr-defined]
        child._waitpid_lock = Interrupted(lock)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            children.code_of(child)

        assert not lock.locked(), "or nobody can wait for it"
        child._waitpid_lock = lock  # type: ignore[attr-defined]

    assert child.returncode == -signal.SIGTERM


@pytest.mark.process
def test_given_a_child_that_fails_when_it_must_not_then_its_last_words_are_told(
    tmp_path: Path,
) -> None:
    with pytest.raises(children.Failed) as caught:
        children.must(("sh", "-c", "echo no room; exit 3"), cwd=tmp_path, log=tmp_path / "log")

    assert (caught.value.code, caught.value.told) == (3, "no room")


@pytest.mark.process
@pytest.mark.parametrize("argv", [("sh", "-c", "echo half; exit 1"), ("no-such-program",)])
def test_given_a_command_that_fails_when_asked_then_it_said_nothing(argv: tuple[str, ...]) -> None:
    assert output_of(argv) == ""
