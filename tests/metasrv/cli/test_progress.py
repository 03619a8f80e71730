"""Progress in a pipe; a command that waits, in a terminal, in a pipe, and with --json."""

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
import typer

from metasrv.cli.progress import LINE_MS, STILL_MS, Lines, described, procedure_bar
from metasrv_base.wire.api.procedures import ProcedureBody
from tests.fakes.clock import FakeClock
from tests.metasrv.cli.rest import LEARN, Rest
from tests.metasrv.sdk.shapes import procedure

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
    rest.answers["POST", "/v1/nodes/dn-1/drain"] = (202, RUNNING)
    rest.answers["GET", PATH] = (200, RUNNING)
    return rest


TRUNCATE = ("table", "truncate", "t", "--yes")
DRAIN = ("node", "drain", "dn-1", "--reason", "new disks")


def argv(rest: Rest, *more: str, words: Sequence[str] = TRUNCATE) -> list[str]:
    # Progress is shown after a second, which a busy machine takes for anything.
    quiet = "from metasrv.cli import progress; progress.AFTER_MS = 3_600_000"
    code = f"{quiet}; from metasrv.cli.main import main; main()"
    return [sys.executable, "-c", code, *words, "--metasrv", rest.url, *more]


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
    return program.wait(240), shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """Linux answers EIO once the last program has closed its end."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.mark.process
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


@pytest.mark.process
@pytest.mark.parametrize(("wait", "code"), [("0", 0), ("0.2", 3)])
def test_given_json_when_the_wait_is_over_then_one_document_and_the_same_code(
    service: Rest, wait: str, code: int
) -> None:
    found, said, errors = in_pipe(argv(service, "--wait", wait, "--json"))

    assert (found, errors) == (code, "")
    assert json.loads(said) == {"id": ID, "state": "running", "done": False}


@pytest.mark.process
@pytest.mark.parametrize("words", [TRUNCATE, DRAIN], ids=["truncate", "drain"])
def test_given_an_interrupt_when_it_waits_then_130_and_what_goes_on(
    service: Rest, words: Sequence[str]
) -> None:
    asked = Event()
    service.on_request = lambda method, path: asked.set() if path.startswith(PATH) else None

    command = argv(service, "--wait", "60", words=words)
    program = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that a shell runs in the background ignore Ctrl-C, and so would this program.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert asked.wait(240)
    program.send_signal(signal.SIGINT)
    said, errors = program.communicate(timeout=240)

    assert (program.returncode, said) == (130, "")
    assert f"interrupted; truncate_table goes on as {ID}" in errors
    assert FOLLOW in errors
    assert STOP in errors
    assert "Traceback" not in errors


def test_given_several_procedures_when_interrupted_then_each_that_goes_on_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def command() -> None:
        with procedure_bar("failover") as tell:
            for id, is_done in (("p-1", False), ("p-2", False), ("p-1", True), ("p-3", False)):
                tell(ProcedureBody.model_validate(procedure(id=id, done=is_done)))
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        command()

    said = capsys.readouterr().err
    assert ended.value.exit_code == 130
    assert [f"cancel p-{number}" in said for number in (1, 2, 3)] == [False, True, True]


def test_given_nothing_that_changes_then_a_line_is_printed_once_a_minute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = FakeClock()
    lines = Lines(clock)
    for _ in range(STILL_MS // 1_000):
        lines.show("fill", 0, 5)
        clock.advance(1_000)
    assert capsys.readouterr().err == "fill: 0 of 5\n"

    lines.show("fill", 0, 5)

    assert capsys.readouterr().err == "fill: 0 of 5\n"


def test_given_a_count_that_grows_then_a_line_is_printed_every_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = FakeClock()
    lines = Lines(clock)
    for done in range(2 * LINE_MS // 1_000):
        lines.show("fill", done, 50)
        clock.advance(1_000)

    assert capsys.readouterr().err == "fill: 0 of 50\nfill: 10 of 50\n"


def test_given_other_words_then_a_line_is_printed_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines(FakeClock())
    lines.show("begin", 0, None)
    lines.show("fill", 0, 5)

    assert capsys.readouterr().err == "begin\nfill: 0 of 5\n"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("by_name", "create_index main.public.t by_name: running, fill"),
        (None, "create_index main.public.t: running, fill"),
    ],
)
def test_given_a_procedure_then_its_line_names_what_of_the_table_it_changes(
    change: str | None, line: str
) -> None:
    body = procedure(kind="create_index", state="running", step="fill", done=False, change=change)

    assert described(ProcedureBody.model_validate(body)) == line
