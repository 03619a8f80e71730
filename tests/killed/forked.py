"""The zygote and its servers, as the test sees them."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.killed.fault import Orders

ROOT = Path(__file__).parents[2]
UNHEARD = -int(signal.SIGKILL)
"""The code of a server whose end is not heard."""


@dataclass
class Forked:
    """One server's process."""

    name: str
    number: int
    pid: int = 0
    term: int = 0
    """0: it has not won."""
    is_asked_for: bool = False
    """Whether the zygote was asked for it."""
    began: asyncio.Event = field(default_factory=asyncio.Event)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """It won, is ready, stopped or ended: look which."""
    is_ready: bool = False
    is_stopped: bool = False
    code: int | None = None
    """With which it ended: minus the signal, if by one."""
    writer: asyncio.StreamWriter | None = None
    told: list[dict[str, Any]] = field(default_factory=list)
    """All that it said, in order."""
    answers: int = 0
    """Number of times that it said that it hears us."""
    submitted: "asyncio.Queue[dict[str, Any]]" = field(default_factory=asyncio.Queue)

    @property
    def has_ended(self) -> bool:
        return self.code is not None

    def do(self, what: str, procedure: str = "") -> None:
        assert self.writer is not None
        self.writer.write(json.dumps({"do": what, "procedure": procedure}).encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        if self.has_ended:
            return
        assert self.pid, "nobody yet, and by its id all of us"
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def end(self) -> None:
        """Whatever it does, and though it be only on its way."""
        if self.is_asked_for:
            await self.began.wait()
            self.signal(signal.SIGKILL)
            await self.until("has_ended")

    def lost(self) -> None:
        """Ends it, as nobody hears its zygote any more."""
        if not self.has_ended:
            if self.pid:
                self.signal(signal.SIGKILL)
            self.code = UNHEARD
        self.began.set()
        self.moved.set()

    def wake(self) -> None:
        self.is_stopped = False
        self.signal(signal.SIGCONT)

    def hears(self, event: str, what: int) -> None:
        """Takes an event that the zygote reports."""
        match event:
            case "began":
                self.pid = what
                self.began.set()
            case "stopped":
                self.is_stopped = True
            case _:
                self.code = what
        self.moved.set()

    def says(self, said: dict[str, Any]) -> None:
        """Takes a message of the server itself."""
        self.told.append(said)
        match said["tells"]:
            case "won":
                self.term = said["term"]
            case "ready":
                self.is_ready = True
            case "answers":
                self.answers += 1
            case "submitted":
                self.submitted.put_nowait(said)
        self.moved.set()

    async def until(self, what: str) -> None:
        """`is_ready`, `term`, `is_stopped` - or its end."""
        while not (getattr(self, what) or self.has_ended):
            self.moved.clear()
            await self.moved.wait()


class Zygote:
    """Use `opened`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._servers: dict[int, Forked] = {}
        self._numbers = count(1)
        self._forking = asyncio.Lock()

    def expect(self, name: str) -> Forked:
        """A server that is to be forked: it may speak before `fork` returns."""
        server = Forked(name, next(self._numbers))
        self._servers[server.number] = server
        return server

    async def fork(self, server: Forked, orders: Orders) -> None:
        assert self._process.stdin
        async with self._forking:
            server.is_asked_for = True
            self._process.stdin.write(json.dumps(orders).encode() + b"\n")
            await server.began.wait()

    def kill(self) -> None:
        """Its servers end too."""
        self._process.kill()

    async def _listen(self) -> None:
        assert self._process.stdout
        while line := await self._process.stdout.readline():
            number, event, what = json.loads(line)
            self._servers[number].hears(event, what)

    async def _watch(self) -> None:
        """Until this is cancelled. Whoever waits for a server then waits no more: where a loop is
        closed, all its tasks are cancelled at once, and nobody hears of the server's end."""
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        zygote = os.pidfd_open(self._process.pid)
        loop.add_reader(zygote, ended.set)  # `wait` ends with the last who may write to its pipe
        try:
            await ended.wait()
            raise ChildProcessError("the zygote has ended")
        finally:
            loop.remove_reader(zygote)
            os.close(zygote)
            for server in self._servers.values():
                server.lost()


@asynccontextmanager
async def zygote() -> AsyncIterator[Zygote]:
    argv = (sys.executable, "-m", "tests.killed.zygote")
    process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, stdin=PIPE, stdout=PIPE)
    made = Zygote(process)
    try:
        async with asyncio.TaskGroup() as tasks:
            hearing = [tasks.create_task(made._listen()), tasks.create_task(made._watch())]
            yield made
            for task in hearing:
                task.cancel()
    finally:
        assert process.stdin
        process.stdin.close()
        await process.communicate()  # to the end of all that may write there
