"""The process that runs a playground, by the record in the lock file of its folder.

A record outlives a process that was killed, and its id may be another process's by then: the time
at which a process started tells the two apart. From /proc (proc(5)), so on Linux only.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from metasrv_base.clock import SystemClock

LOCK = "playground.lock"
"""Locked while a playground runs in the folder; holds its record from its start to its end."""
GONE = frozenset("ZX")
"""States of a process that has ended."""
SUSPENDED = frozenset("Tt")


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A line of /proc/PID/stat."""

    state: str
    parent: int
    started_ticks: int
    """Clock ticks since the machine started."""


@dataclass(frozen=True, slots=True)
class PlaygroundHolder:
    """The process of a playground."""

    pid: int
    started_ticks: int
    since_ms: int
    """Milliseconds since the Unix epoch."""

    @property
    def is_running(self) -> bool:
        process = process_state(self.pid)
        return process is not None and process.started_ticks == self.started_ticks


def process_state(pid: int) -> ProcessState | None:
    """Reads the state of a process; returns None if no such process runs. The name, in parentheses,
    may hold anything."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] in GONE:
        return None
    return ProcessState(fields[0], int(fields[1]), int(fields[19]))


def this_process() -> PlaygroundHolder:
    own = process_state(os.getpid())
    return PlaygroundHolder(
        os.getpid(), 0 if own is None else own.started_ticks, SystemClock().wall_ms()
    )


def record_of(holder: PlaygroundHolder) -> bytes:
    return json.dumps(asdict(holder)).encode()


def recorded(folder: Path) -> PlaygroundHolder | None:
    """The record in *folder*, whose process may be gone. None: no playground runs there, and the
    last one ended as it should."""
    try:
        record: Any = json.loads((folder / LOCK).read_bytes())
    except (OSError, ValueError):
        return None
    names = PlaygroundHolder.__dataclass_fields__
    if not isinstance(record, Mapping) or record.keys() != names.keys():
        return None
    numbers = {name: value for name, value in record.items() if type(value) is int and value >= 0}
    return PlaygroundHolder(**numbers) if numbers.keys() == names.keys() else None
