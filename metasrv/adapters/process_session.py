"""Ends a session of processes (setsid(2)) whole, by what proc(5) lists.

Its process group is not enough: PySpark's worker daemon makes a group of its own, and a worker that
is writing a file outlives the JVM that it serves.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

PROCESSES = Path("/proc")
DEAD = "ZX"
LOOK_AGAIN_S = 0.01  # a kill takes effect when the kernel next schedules the process


def processes_of(session: int) -> list[int]:
    """Process ids that run in *session* (the id of the process that began it). Zombies do not."""
    return [pid for pid, state, its in _all() if its == session and state not in DEAD]


def kill_now(session: int) -> list[int]:
    """Sends SIGKILL to each process of the session, and returns those that it was sent to."""
    running = processes_of(session)
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return running


async def kill_session(session: int) -> None:
    """Returns when no process of the session runs: children that are forked meanwhile go too."""
    for _ in iter(partial(kill_now, session), []):
        await asyncio.sleep(LOOK_AGAIN_S)


def _all() -> Iterator[tuple[int, str, int]]:
    """(process, state, session) of each. Its name, in parentheses, may hold anything."""
    for folder in PROCESSES.glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, _parent, _group, session, *_ = (
                (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            )
            yield int(folder.name), state, int(session)
