"""One program as a child process: started on a leash, signalled by pid, never left behind."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from metasrv.playground import die_with_parent
from metasrv.playground.plan import Program

GRACE_S = 10.0  # after SIGTERM; a datanode writes its rows to files in less
LOG_LINES_SHOWN = 15


class Child:
    """Runs at most one process at a time; its output goes to `logs/{id}.log`, run after run."""

    def __init__(self, program: Program, logs: Path, env: Mapping[str, str], cwd: Path) -> None:
        self.program = program
        self._log = logs / f"{program.id}.log"
        self.env = env
        """The whole environment of its processes."""
        self._cwd = cwd
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The id of the last process, which may have ended."""
        assert self._process is not None, "it was never started"
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        assert self._process is not None, "it was never started"
        return self._process.returncode

    async def start(self) -> None:
        assert self._process is None or self._process.returncode is not None
        self.program.folder.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        if self.program.ready_file is not None:
            self.program.ready_file.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())),
                *self.program.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.env),
                cwd=self._cwd,
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to this process alone, not to those that it has started."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def ended(self) -> int:
        """The exit code, as `returncode`."""
        assert self._process is not None, "it was never started"
        return await self._process.wait()

    async def stop(self) -> None:
        """SIGTERM, a grace, SIGKILL to all it started. Wakes a stopped process for it."""
        if self._process is None:
            return
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self.ended()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self.ended()

    def last_words(self) -> str:
        """The end of its log, for a person."""
        if not self._log.exists():
            return ""
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])
