"""Metasrv, measuring its event loop; `serving.launch benchmarks.service.watched FLAGS` starts it.

It runs on the loop of the standard library, whose handles can be measured, instead of uvloop. A
piece is one handle: what runs between two looks at what is ready. Its time is the thread's own
processor time, garbage collections included, so other programs on the machine do not count. At the
end a report goes to the file that the environment variable WATCHED_REPORT names.
"""

import asyncio
import gc
import json
import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from metasrv.server import main as metasrv
from metasrv_base.clock import SystemClock

REPORT = "WATCHED_REPORT"
SLOW_NS = 20_000_000  # pieces that the report names
_sound = asyncio.Handle._run


def spent_ns() -> int:
    """Processor time of this thread, its own and the kernel's for it."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return int((used.ru_utime + used.ru_stime) * 1e9)


class Watch:
    """All pieces so far."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.began_ms = self.clock.mono_ms()
        self.pieces = 0
        self.longest_ns = 0
        self.slow: list[dict[str, Any]] = []
        self._collecting_since_ns = 0
        self._collected_ns = 0
        """Time of garbage collections in this piece, in ns."""
        self._passes: list[int] = []
        """Their generations."""

    def run(self, handle: asyncio.Handle) -> None:
        """Runs *handle*, in place of its own method, and measures it."""
        self._collected_ns, self._passes = 0, []
        name = _name(handle)
        before = spent_ns()
        _sound(handle)
        took = spent_ns() - before
        self.pieces += 1
        self.longest_ns = max(self.longest_ns, took)
        if took >= SLOW_NS:
            at_s = (self.clock.mono_ms() - self.began_ms) / 1000
            facts: dict[str, Any] = {
                "at_s": round(at_s, 1),
                "ms": took / 1e6,
                "gc_ms": self._collected_ns / 1e6,
            }
            facts["generations"] = self._passes
            self.slow.append({**facts, "what": name, "then": _name(handle)})

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """Notes a garbage collection; a callback for `gc.callbacks`."""
        now = spent_ns()
        if phase == "start":
            self._collecting_since_ns = now
        else:
            self._collected_ns += now - self._collecting_since_ns
            self._passes.append(info["generation"])

    def report(self) -> dict[str, Any]:
        return {"pieces": self.pieces, "longest_ms": self.longest_ns / 1e6, "slow": self.slow}


def _name(handle: asyncio.Handle) -> str:
    """The innermost coroutine of a task's step, or the function."""
    callback: Any = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return str(getattr(callback, "__qualname__", callback))
    coroutine: Any = task.get_coro()
    names = []
    while coroutine is not None and hasattr(coroutine, "cr_await"):
        names.append(coroutine.__qualname__)
        coroutine = coroutine.cr_await
    return " > ".join(names[-3:])


def main(argv: Sequence[str]) -> int:
    watch = Watch()

    def run(handle: asyncio.Handle) -> None:
        watch.run(handle)

    asyncio.Handle._run = run  # type: ignore[method-assign, assignment]
    uvloop.new_event_loop = asyncio.new_event_loop  # type: ignore[assignment]
    gc.callbacks.append(watch.collected)
    try:
        return metasrv.main(argv)
    finally:
        Path(os.environ[REPORT]).write_text(json.dumps(watch.report()))
