"""Two terminals in which the commands of a page run: one that stays busy, and one shell."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.metasrv.playground.waiting import until
from tests.process.pages.commands import Command, agrees

READY_S_MAX = 300
STOP_S_MAX = 300
_DONE = "done"


class BusyTerminal:
    """Runs one command until it is interrupted as Ctrl-C does it: its whole process group."""

    def __init__(self, command: Command, out: Path, *, cwd: Path, env: Mapping[str, str]) -> None:
        self._command = command
        self._out = out
        with out.open("wb") as file:
            self._process = subprocess.Popen(
                ["bash", "-e", "-c", command.text],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(STOP_S_MAX)

    def wait_until_it_prints_what_the_page_shows(self, limit_s: float = READY_S_MAX) -> None:
        """Raises AssertionError if the command ends before, or does not print it in time."""
        shown = self._command.shown
        assert shown is not None, "a page shows when a program that stays is ready"

        def is_there() -> bool:
            assert self._process.poll() is None, self._out.read_text()
            return agrees(shown, self._out.read_text())

        until(is_there, limit_s, self._out.read_text)


class Shell:
    """One bash, fed block by block: variables and the folder stay from one to the next."""

    def __init__(self, folder: Path, *, cwd: Path, env: Mapping[str, str]) -> None:
        """*folder*: for files that hold what a block prints."""
        self._out, self._err = folder / "block.out", folder / "block.err"
        self._process = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=cwd,
            env=env,
            text=True,
        )
        self._send("set -o pipefail; trap 'failed=\"$BASH_COMMAND: exit code $?\"' ERR")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, command: Command) -> str:
        """Runs *command*; returns its standard output, with its standard error amid it, as a
        terminal has it, where the page shows an exit code. Raises AssertionError if a command of
        the block fails unexpectedly."""
        assert self._process.stdout is not None
        shows_errors = "exit code" in command.text
        self._err.write_text("")
        errors = "&1" if shows_errors else self._err
        block = f"{{ {command.text}\n}} >{self._out} 2>{errors}"
        self._send(f'failed=""; {block}; echo "{_DONE} $failed" | tr "\\n" " "; echo')
        answer = self._process.stdout.readline().strip()
        out, err = self._out.read_text(), self._err.read_text()
        assert answer == _DONE, f"line {command.line}: {answer or 'the shell ended'}\n{out}{err}"
        return out

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
