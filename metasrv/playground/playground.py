"""A whole cluster as child processes: an async context that is entered when all of it serves."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from metasrv.host.tool_search import toolchain
from metasrv.host.toolchain import checkout
from metasrv.playground.child import Child
from metasrv.playground.document import NAME, PlaygroundBody, document_of, write_document
from metasrv.playground.folder import cleared, held
from metasrv.playground.plan import PlaygroundOptions, Program, plan, ports_needed
from metasrv.playground.ports import free_ports
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.rng import SystemRng

READY_S_MAX = 300.0
"""The longest start of one program, with etcd's election and the first heartbeats."""
POLL_MS = 50
PROBE_S_MAX = 2.0

OnReady = Callable[[str], None]
"""Called with the id of each program that has become ready."""


class Playground:
    """Leave it and everything it started is gone; kill it, and the kernel sees to that.

    Use it in the main thread: children die with the thread that started them.
    """

    def __init__(
        self,
        settings: PlaygroundOptions,
        *,
        clock: Clock | None = None,
        on_ready: OnReady | None = None,
        ready_s_max: float = READY_S_MAX,
    ) -> None:
        self.settings = settings
        self.children: dict[str, Child] = {}
        self._clock = clock or SystemClock()
        self._on_ready = on_ready or (lambda _: None)
        self._ready_s_max = ready_s_max
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        faults = list(self.settings.faults())
        if faults:
            raise Refused("invalid-request", reason="; ".join(faults))
        async with AsyncExitStack() as stack:
            stack.enter_context(held(self.settings.data_dir))
            self._http = await stack.enter_async_context(
                httpx.AsyncClient(trust_env=False, timeout=PROBE_S_MAX)
            )
            stack.push_async_callback(self._stop)
            if self.settings.reset:
                await asyncio.to_thread(cleared, self.settings.data_dir)
            await self._start()
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.aclose()

    @property
    def etcd_urls(self) -> tuple[str, ...]:
        own = self.children.get("etcd")
        return self.settings.etcd if own is None else (own.program.url,)

    @property
    def metasrv_urls(self) -> tuple[str, ...]:
        return tuple(program.url for program in self.programs if program.role == "metasrv")

    @property
    def datanode_urls(self) -> dict[str, str]:
        """URLs of datanodes, by id."""
        return {program.id: program.url for program in self.programs if program.role == "datanode"}

    @property
    def frontend_urls(self) -> dict[str, str]:
        """URLs of frontends, by id."""
        return {program.id: program.url for program in self.programs if program.role == "frontend"}

    @property
    def datanode_roots(self) -> dict[str, Path]:
        """Storage roots of datanodes, by id."""
        return {program.id: program.root for program in self.programs if program.role == "datanode"}

    @property
    def programs(self) -> list[Program]:
        return [child.program for child in self.children.values()]

    @property
    def document(self) -> PlaygroundBody:
        return document_of(self.children, self.etcd_urls, self.settings.key_prefix)

    def pid(self, id: str) -> int:
        return self.children[id].pid

    async def kill(self, id: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal one program; of SIGKILL and SIGTERM the end is waited for."""
        self.children[id].send(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            await self.children[id].ended()

    async def restart(self, id: str) -> None:
        """Start a program that has ended, and wait until it serves."""
        await self.children[id].start()
        await self.ready(id)
        self.announce()

    async def ready(self, id: str) -> None:
        """Waits until a program serves. Raises Unavailable with its last output if it ends or takes
        too long."""
        child = self.children[id]
        until = self._clock.mono_ms() + self._ready_s_max * 1000
        while not await self._serves(child):
            if child.returncode is not None or self._clock.mono_ms() > until:
                output = await asyncio.to_thread(child.last_words)
                reason = "it ended" if child.returncode is not None else "it does not serve"
                raise Unavailable("not-ready", what=id, reason=reason, told=output.splitlines())
            await self._clock.sleep_ms(POLL_MS)
        self._on_ready(id)

    def announce(self) -> None:
        """Write `playground.json` anew."""
        write_document(self.settings.data_dir, self.document)

    # -- inside

    async def _start(self) -> None:
        env, etcd_path = await asyncio.to_thread(_environment, bool(self.settings.etcd))
        ports = free_ports(ports_needed(self.settings), SystemRng())
        logs = self.settings.data_dir / "logs"
        for program in plan(self.settings, etcd_path, ports):
            self.children[program.id] = Child(program, logs, env, checkout())
        if "etcd" in self.children:
            await self.children["etcd"].start()
            await self.ready("etcd")
        rest = [id for id in self.children if id != "etcd"]
        for id in rest:
            await self.children[id].start()
        await fan_out([partial(self.ready, id) for id in rest], at_once=len(rest) or 1)
        self.announce()

    async def _stop(self) -> None:
        """etcd last: the others still tell it that they go."""
        (self.settings.data_dir / NAME).unlink(missing_ok=True)
        rest = [child for id, child in self.children.items() if id != "etcd"]
        await fan_out([child.stop for child in rest], at_once=len(rest) or 1)
        if "etcd" in self.children:
            await self.children["etcd"].stop()

    async def _serves(self, child: Child) -> bool:
        program = child.program
        if program.ready_file is not None and not program.ready_file.exists():
            return False
        try:
            return (await self._http.get(program.probe)).status_code == 200
        except httpx.TransportError:
            return False


def _environment(has_etcd: bool) -> tuple[dict[str, str], str]:
    """Returns the environment of children, and etcd's path. Raises Refused without an etcd."""
    chosen = toolchain()
    env = {**os.environ, **chosen.environment(os.environ.get("PATH", ""))}
    if chosen.etcd is not None:
        return env, chosen.etcd.path
    if has_etcd:
        return env, ""
    raise Refused(
        "invalid-request",
        expected="an etcd on PATH or in the extra `demo`: `metasrv doctor` says what to do",
    )
