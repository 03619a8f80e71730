"""`metasrv show VIEW --watch` as a program in a terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ
from typing import Any

import pytest

from tests.metasrv.cli.rest import Rest

pytestmark = pytest.mark.process

WIDTH, HEIGHT = 80, 24
PATH = ("GET", "/v1/information-schema/tables")
CODE = "from metasrv.cli.main import main; main()"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def page(*names: str) -> dict[str, Any]:
    rows = [[name, "x" * 200] for name in names]
    columns = ["table_name", "table_comment"]
    return {"view": "tables", "columns": columns, "rows": rows, "catalog_version": 7}


def test_given_a_terminal_when_watched_then_it_follows_and_leaves_the_terminal_as_it_was(
    rest: Rest,
) -> None:
    """The view changes at the second read; ^C comes at the fourth."""
    reads: list[str] = []
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, pack("HHHH", HEIGHT, WIDTH, 0, 0))
    rest.answers[PATH] = (200, page("first_table"))

    def read(method: str, path: str) -> None:
        if path.startswith(PATH[1]):
            reads.append(path)
            if len(reads) == 2:
                rest.answers[PATH] = (200, page("second_table", *(f"t{n}" for n in range(60))))
            if len(reads) == 4:
                program.send_signal(signal.SIGINT)

    rest.on_request = read
    words = ("show", "tables", "--watch", "--every", "0.2", "--metasrv", rest.url)
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    program = subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = all_of(ours)

    assert program.wait(240) == 0, shown
    assert len(reads) >= 4
    assert "first_table" in shown
    assert "second_table" in shown
    assert shown.rstrip().endswith("\x1b[?25h"), "the cursor is there again"
    frames = CONTROL.sub("", shown).replace("\r", "\n").splitlines()
    assert max(map(len, frames)) <= WIDTH
    before, _, after = shown.partition("second_table")
    assert "first_table" in before
    assert after.count("second_table") >= 2, "each read is shown, and the last one stays"
    assert "Traceback" not in shown


def all_of(terminal: int) -> str:
    shown = b""
    while part := _read(terminal):
        shown += part
    os.close(terminal)
    return shown.decode()


def _read(terminal: int) -> bytes:
    """Linux answers EIO once the last program has closed its end."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
