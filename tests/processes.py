"""Processes that run, from /proc (proc(5)). A zombie does not: its parent has not reaped it yet."""

import os
import select
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

NOT_RUNNING = "ZX"


def is_running(pid: int) -> bool:
    try:
        state, _parent, _session = _stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in NOT_RUNNING


def has_ended(pid: int, within_s: float = 120.0) -> bool:
    """Waits for it: a signal is delivered some time after it was sent."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within_s)[0])
    finally:
        os.close(watched)


def session_is_running(leader: int) -> bool:
    """Whether any process of the session that *leader* began is there (setsid(2))."""
    return any(
        session == leader and state not in NOT_RUNNING for _, state, _, session in _all_processes()
    )


def children_of(parent: int) -> list[int]:
    return [pid for pid, _, of, _ in _all_processes() if of == parent]


def _all_processes() -> Iterator[tuple[int, str, int, int]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            yield int(folder.name), *_stat(int(folder.name))


def _stat(pid: int) -> tuple[str, int, int]:
    """(state, parent, session). The name, in parentheses, may hold anything."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return stat[0], int(stat[1]), int(stat[3])
