"""No child outlives its caller, however the caller is ended."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from scripts import children
from tests.processes import has_ended, is_running

ROOT = Path(__file__).parents[2]
FAMILY = ("sh", "-c", "sleep 300 & echo $!; wait")  # says the id of its own child
CALLER = """
import sys
from pathlib import Path
from scripts import children

with children.ended_by_signals():
    children.run(sys.argv[1:], cwd=Path("."))
"""


@pytest.mark.process
def test_given_a_limit_when_it_passes_then_the_whole_family_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"

    code = children.run(FAMILY, cwd=tmp_path, log=log, limit_s=3)

    assert code == 124
    assert has_ended(int(log.read_text()))


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_given_a_caller_when_it_is_ended_then_the_whole_family_is_gone(
    number: signal.Signals,
) -> None:
    argv = [sys.executable, "-c", CALLER, *FAMILY]
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
        grandchild = int(caller.stdout.readline())
        assert is_running(grandchild)

        caller.send_signal(number)
        caller.wait(20)

    assert has_ended(grandchild)


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
    assert children.said(argv) == ""
