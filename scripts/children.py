"""Child processes that never outlive us: each has its own process group, ended when we end."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType

from metasrv_base.clock import SystemClock

OUT_OF_TIME = 124  # as timeout(1) says it
LOOK_S = 0.05
GRACE_S = 10.0  # after SIGTERM; apt and etcd tidy up in less
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failed(Exception):
    """A child ended badly. `told` is what it said last, for a person."""

    def __init__(self, argv: Sequence[str], code: int, told: str) -> None:
        self.code = code
        self.told = told
        super().__init__(f"{' '.join(argv[:4])} ended with {code}")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that `finally` runs."""

    def unwind(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, unwind)
    yield


@contextmanager
def _held_back() -> Iterator[set[signal.Signals]]:
    """Holds back the signals that end this program, so that a child that was started is registered.

    Yields the mask from before, which a child must have again.
    """
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield {signal.Signals(number) for number in usual}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)


@contextmanager
def begun(
    argv: Sequence[str],
    *,
    cwd: Path,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a group of its own. With `log` its words go there, else to our own output.

    However we leave, its group is gone.
    """
    settings = {**os.environ, **(env or {})}
    child: subprocess.Popen[bytes] | None = None
    with _sink(log) as sink:
        try:
            with _held_back() as usual:
                child = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=settings,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT if sink else None,
                    start_new_session=True,
                    preexec_fn=partial(signal.pthread_sigmask, signal.SIG_SETMASK, usual),
                )
            yield child
        finally:
            if child is not None:
                end_group(child)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> int:
    """Run to the end and return the exit code; 124 when the limit passed first."""
    with begun(argv, cwd=cwd, log=log, env=env) as child:
        return OUT_OF_TIME if (code := _waited(child, limit_s)) is None else code


def code_of(child: subprocess.Popen[bytes]) -> int | None:
    """Returns the exit code of a child that has ended; None: it runs.

    Signals that end us are held back meanwhile: one that came while `poll` takes the lock of the
    child would leave it locked, and nobody could wait for the child any more.
    """
    with _held_back():
        return child.poll()


def must(argv: Sequence[str], *, cwd: Path, log: Path) -> None:
    """Run, and raise Failed with the last lines of the log unless it ended with 0."""
    code = run(argv, cwd=cwd, log=log)
    if code:
        raise Failed(argv, code, "\n".join(log.read_text(errors="replace").splitlines()[-15:]))


def _waited(child: subprocess.Popen[bytes], limit_s: float | None) -> int | None:
    """Waits for a child; None: the limit passed first."""
    clock, pause = SystemClock(), Event()
    end_ms = None if limit_s is None else clock.mono_ms() + int(limit_s * 1000)
    while (code := code_of(child)) is None:
        if end_ms is not None and clock.mono_ms() >= end_ms:
            return None
        pause.wait(LOOK_S)
    return code


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and all it started: SIGTERM, a grace, SIGKILL."""
    _signal_group(child.pid, signal.SIGTERM)
    try:
        _waited(child, GRACE_S)
    finally:
        _signal_group(child.pid, signal.SIGKILL)
        child.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # all gone; macOS says the second of a zombie
        return


@contextmanager
def _sink(log: Path | None) -> Iterator[int | None]:
    if log is None:
        yield None
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as opened:
        yield opened.fileno()
