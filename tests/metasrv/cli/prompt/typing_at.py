"""`metasrv sql` at a terminal of its own, in which a test types and looks."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from select import select
from struct import pack
from termios import TIOCSCTTY, TIOCSWINSZ

from metasrv_base.clock import SystemClock

LIMIT_S = 240
PROMPT = "main.public>"
CTRL_C, CTRL_D, ENTER, TAB = "\x03", "\x04", "\r", "\t"
_CODE = "from metasrv.cli.main import main; main()"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[^\[]")


class Terminal:
    def __init__(self, ours: int, program: "subprocess.Popen[bytes]") -> None:
        self._ours = ours
        self._program = program
        self._shown = b""
        self._taken = 0
        """Characters that were waited for."""

    @property
    def text(self) -> str:
        """All that was shown and not yet waited for, without controls."""
        text = _CONTROLS.sub("", self._shown.decode(errors="replace")).replace("\r", "")
        return text[self._taken :]

    def types(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def shows(self, expected: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Waits for *expected*. *meanwhile*: called while nothing comes."""
        clock = SystemClock()
        end = clock.mono_ms() + LIMIT_S * 1000
        while expected not in self.text:
            assert clock.mono_ms() < end, f"{expected!r} is not shown:\n{self.text}"
            if not self._is_readable(0.3):
                meanwhile()
            elif not self._reads():
                raise AssertionError(f"it ended before {expected!r}:\n{self.text}")
        self._taken += self.text.index(expected) + len(expected)

    def ends(self) -> int:
        """Waits for the end of the program; returns its exit code."""
        while self._is_readable(LIMIT_S) and self._reads():
            pass
        return self._program.wait(LIMIT_S)

    def _is_readable(self, limit_s: float) -> bool:
        return bool(select([self._ours], [], [], limit_s)[0])

    def _reads(self) -> bool:
        """Whether anything came."""
        try:
            data = os.read(self._ours, 65_536)
        except OSError:  # Linux: the program has closed its end
            return False
        self._shown += data
        return bool(data)


@contextmanager
def prompt(url: str, state: Path, *words: str) -> Iterator[Terminal]:
    """A prompt that has just started. *state*: the folder of the user's state."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, pack("HHHH", 40, 150, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    more = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(state)}
    program = subprocess.Popen(
        [sys.executable, "-c", _CODE, "sql", "--metasrv", url, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, **more},
        start_new_session=True,
        preexec_fn=lambda: ioctl(0, TIOCSCTTY, 0) and None,  # so that Ctrl-C reaches it
    )
    os.close(theirs)
    try:
        terminal = Terminal(ours, program)
        terminal.shows(PROMPT)
        yield terminal
    finally:
        program.kill()
        program.wait()
        os.close(ours)
