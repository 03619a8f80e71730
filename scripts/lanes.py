"""Children side by side, in lanes: a lane is a generator that yields for as long as it waits."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event

from metasrv_base.clock import SystemClock
from scripts.children import OUT_OF_TIME, begun

Lane = Generator[None, None, None]

LOOK_S = 0.05


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
) -> Generator[None, None, int]:
    """`children.run` for a lane: the exit code, or 124 when the limit passed first."""
    clock = SystemClock()
    end_ms = clock.mono_ms() + int(limit_s * 1000)
    with begun(argv, cwd=cwd, log=log, env=env) as child:
        while (code := child.poll()) is None:
            if clock.mono_ms() >= end_ms:
                return OUT_OF_TIME
            yield
        return code
