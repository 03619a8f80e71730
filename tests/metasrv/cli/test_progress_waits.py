"""A command that waits for a change, as a program: in a terminal, in a pipe, and with --json."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from fcntl import ioctl
from functools import partial
from struct import pack
from termios import TIOCSWINSZ
from threading import Event

import pytest

from tests.metasrv.cli.rest import LEARN, Rest
from tests.metasrv.sdk.shapes import procedure

pytestmark = pytest.mark.process

WIDTH = 80
TABLE = "/v1/catalogs/main/schemas/public/tables/t"
RUNNING = procedure(kind="truncate_table", state="running", done=False)
ID = RUNNING["id"]
PATH = f"/v1/procedures/{ID}"
FOLLOW, STOP = f"metasrv procedure watch {ID}", f"metasrv procedure cancel {ID}"


@pytest.fixture
def service(rest: Rest) -> Rest:
    """Takes a change, and never finishes it."""
    rest.answers["GET", LEARN] = (200, {"metasrvs": [{"url": rest.url}]})
    rest.answers["POST", f"{TABLE}/truncate"] = (202, RUNNING)
    rest.answers["GET", PATH] = (200, RUNNING)
    return rest


def argv(rest: Rest, *words: str) -> list[str]:
    # Progress is shown after a second, which a busy machine takes for anything.
    quiet = "from metasrv.cli import progress; progress.AFTER_MS = 3_600_000"
    code = f"{quiet}; from metasrv.cli.main import main; main()"
    given = ("table", "truncate", "t", "--yes", "--metasrv", rest.url)
    return [sys.executable, "-c", code, *given, *words]


def in_pipe(command: Sequence[str]) -> tuple[int, str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def in_terminal(command: Sequence[str]) -> tuple[int, str]:
    """Exit code, and all that a terminal of 80 columns was shown."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, pack("HHHH", 24, WIDTH, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    program = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    while part := _read(ours):
        shown += part
    os.close(ours)
    return program.wait(60), shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """Linux answers EIO once the last program has closed its end."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.mark.parametrize(("wait", "code"), [("0", 0), ("0.2", 3)])
def test_given_a_wait_that_ends_before_the_change_then_it_says_how_to_follow_and_to_stop(
    service: Rest, wait: str, code: int
) -> None:
    command = argv(service, "--wait", wait)

    piped = in_pipe(command)
    terminal = in_terminal(command)

    begun = f"started {ID}" if code == 0 else f"{ID} is running and goes on"
    said = f"{begun}\n  to follow it: {FOLLOW}\n  to stop it: {STOP}\n"
    assert piped == (code, said, "")
    assert terminal == (code, said)
    assert max(map(len, said.splitlines())) <= WIDTH


@pytest.mark.parametrize(("wait", "code"), [("0", 0), ("0.2", 3)])
def test_given_json_when_the_wait_is_over_then_one_document_and_the_same_code(
    service: Rest, wait: str, code: int
) -> None:
    found, said, errors = in_pipe(argv(service, "--wait", wait, "--json"))

    assert (found, errors) == (code, "")
    assert json.loads(said) == {"id": ID, "state": "running", "done": False}


def test_given_an_interrupt_when_it_waits_then_130_and_what_goes_on(service: Rest) -> None:
    asked = Event()
    service.on_request = lambda method, path: asked.set() if path.startswith(PATH) else None

    command = argv(service, "--wait", "60")
    program = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that a shell runs in the background ignore Ctrl-C, and so would this program.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert asked.wait(60)
    program.send_signal(signal.SIGINT)
    said, errors = program.communicate(timeout=60)

    assert (program.returncode, said) == (130, "")
    assert f"interrupted; truncate_table goes on as {ID}" in errors
    assert FOLLOW in errors
    assert STOP in errors
    assert "Traceback" not in errors
