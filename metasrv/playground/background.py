"""A playground in the background: started in a session of its own, and stopped by process id.

It is the playground of the foreground, with its output in a file.
"""

import os
import select
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from metasrv.playground.document import PlaygroundBody
from metasrv.playground.folder import LOG, unusable
from metasrv.playground.holder import process_state, recorded
from metasrv.playground.status import document_in, status_of
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Conflict, Unavailable

START_MS_MAX = 700_000
"""The longest start. A program of it may take 300 s, and etcd starts before the others."""
STOP_S_MAX = 60.0
"""The time for an orderly end; then SIGKILL. Each program has ten seconds, etcd comes last."""
KILL_S_MAX = 10.0
LINES_SHOWN = 15

OnWait = Callable[[str], None]
"""Called again and again with the last line of the log; it waits for a moment."""


def start(folder: Path, argv: Sequence[str], on_wait: OnWait) -> PlaygroundBody:
    """Runs *argv*, a playground of *folder* in the foreground, and returns when it serves.

    Raises Conflict `object-locked` if one runs there already, Refused for a folder that cannot be
    written, Unavailable with the end of its log if it does not come up. Then, and when this is
    interrupted, nothing of it is left.
    """
    if status_of(folder).state in ("running", "changing"):
        raise Conflict("object-locked", resource=str(folder), holder="a playground")
    log = folder / LOG
    with _opened_log(folder, log) as output:
        begun = output.tell()
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    document = None
    try:
        document = _started(folder, process, log, begun, on_wait)
        return document
    finally:
        if document is None:
            process.terminate()
            process.wait()


def _opened_log(folder: Path, log: Path) -> IO[bytes]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab")
    except OSError as error:
        raise unusable(folder, error) from error


def _started(
    folder: Path, process: "subprocess.Popen[bytes]", log: Path, begun: int, on_wait: OnWait
) -> PlaygroundBody:
    """Waits until the playground serves. The first *begun* bytes of the log are older than the
    process."""
    clock = SystemClock()
    until_ms = clock.mono_ms() + START_MS_MAX
    while True:
        holder, document = recorded(folder), document_in(folder)
        if holder is not None and holder.pid == process.pid and document is not None:
            process.returncode = 0  # it goes on, and nobody waits for its end here
            return document
        lines = _lines(log, begun)
        if process.poll() is not None or clock.mono_ms() > until_ms:
            reason = "it does not serve" if process.returncode is None else "it ended"
            raise Unavailable(
                "not-ready", what="the playground", reason=reason, told=lines[-LINES_SHOWN:]
            )
        on_wait(lines[-1] if lines else "")


def _lines(log: Path, begun: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(begun)
        return file.read().decode(errors="replace").splitlines()


@dataclass(frozen=True, slots=True)
class StoppedPlayground:
    """A playground that has ended."""

    pid: int
    programs: tuple[tuple[str, int], ...]
    """(id, pid) of those that ran; all have ended."""
    killed: tuple[str, ...]
    """Ids of those that were killed, since they did not end in time."""


OWN = "playground"
"""The id of the process that started the others."""


def stop(folder: Path) -> StoppedPlayground | None:
    """Ends the playground of *folder*, started in whatever way, and waits for the end of each of
    its processes. None: none runs. Raises PermissionError for that of another user.

    A process is signalled by a descriptor, so that no other gets the signal if it ends meanwhile.
    """
    with ExitStack() as stack:
        holder = recorded(folder)
        opened = None if holder is None else _opened(stack, holder.pid)
        if holder is None or opened is None or not holder.is_running:
            return None
        programs = [program for program in status_of(folder).programs if program.state != "ended"]
        descriptors = {OWN: opened}
        for program in programs:
            descriptor = _opened(stack, program.pid)
            process = process_state(program.pid)
            if descriptor is not None and process is not None and process.parent == holder.pid:
                descriptors[program.id] = descriptor
        for number in (signal.SIGTERM, signal.SIGCONT):
            _send(opened, number)
        killed = _killed(descriptors, _left(descriptors, STOP_S_MAX))
        return StoppedPlayground(
            holder.pid, tuple((program.id, program.pid) for program in programs), tuple(killed)
        )


def _killed(descriptors: dict[str, int], left: list[str]) -> list[str]:
    """Kills those *left*; when the playground's own process is killed the kernel ends the rest.
    Raises Unavailable for a process that does not end even so."""
    for id in left:
        _send(descriptors[id], signal.SIGKILL)
    stuck = _left({id: descriptors[id] for id in left}, KILL_S_MAX)
    if stuck:
        raise Unavailable("not-ready", what=", ".join(stuck), reason="SIGKILL did not end it")
    return left


def _left(descriptors: dict[str, int], within_s: float) -> list[str]:
    """Returns the ids of processes that have not ended within the time."""
    clock = SystemClock()
    until_ms = clock.mono_ms() + int(within_s * 1000)
    waiting = dict(descriptors)
    while waiting and (left_ms := until_ms - clock.mono_ms()) > 0:
        ended, _, _ = select.select(list(waiting.values()), [], [], left_ms / 1000)
        waiting = {id: descriptor for id, descriptor in waiting.items() if descriptor not in ended}
    return list(waiting)


def _opened(stack: ExitStack, pid: int) -> int | None:
    """A descriptor of a process. None: it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor


def _send(descriptor: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)
