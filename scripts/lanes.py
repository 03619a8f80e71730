"""Children side by side, in lanes: a lane is a generator that yields for as long as it waits."""

import resource
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from metasrv_base.clock import SystemClock
from scripts.children import LOOK_S, OUT_OF_TIME, begun, code_of, end_group

Lane = Generator[None, None, None]


@dataclass(frozen=True)
class Ended:
    """Result of a child: its exit code, or 124 when the limit passed first, and the processor time
    of it and of all descendants whose parents waited for them, in ms, user and system."""

    code: int
    cpu_ms: int


def run_lanes(lanes: Iterable[Lane]) -> None:
    """Runs the lanes until all have ended. On any exit every lane is closed and its child has
    ended."""
    pause = Event()
    with ExitStack() as stack:
        going = [stack.enter_context(closing(lane)) for lane in lanes]
        while going := [lane for lane in going if _goes_on(lane)]:
            pause.wait(LOOK_S)


def _goes_on(lane: Lane) -> bool:
    try:
        next(lane)
    except StopIteration:
        return False
    return True


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    log: Path | None,
    env: Mapping[str, str] | None = None,
    limit_s: float,
) -> Generator[None, None, Ended]:
    """`children.run` for a lane."""
    clock = SystemClock()
    end_ms = clock.mono_ms() + int(limit_s * 1000)
    with begun(argv, cwd=cwd, log=log, env=env) as child:
        while True:
            # No other child is waited for between these lines, so the difference is that of this.
            before_ms = _cpu_ms()
            if (code := code_of(child)) is not None:
                return Ended(code, _cpu_ms() - before_ms)
            if clock.mono_ms() >= end_ms:
                end_group(child)
                return Ended(OUT_OF_TIME, _cpu_ms() - before_ms)
            yield


def _cpu_ms() -> int:
    """Processor time of all children that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1000)
