"""Runs every static check: `make check`."""

import sys
from collections.abc import Generator, Sequence
from pathlib import Path

from metasrv_base.clock import SystemClock
from scripts import children, lanes
from scripts.report import Took, table

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".run" / "logs"
PROCESSOR_LIMIT_S = 300
"""Processor time of one program, against one that computes for ever. mypy without a cache takes
the longest."""
HANG_LIMIT_S = 1_800
"""Wall time of one program, against one that waits for ever. Work beside others is not cut off."""

Check = tuple[str, tuple[str, ...]]

# Side by side; the types take as long as all others together.
LANES: tuple[tuple[Check, ...], ...] = (
    (("types", ("mypy",)),),
    (
        ("format", ("ruff", "format", "--check", ".")),
        ("lint", ("ruff", "check", "--output-format=concise", ".")),
        ("contracts", ("lint-imports", "--cache-dir", ".run/import-linter")),
        (
            "tidy",
            (
                "pytest",
                "tests/test_tidy.py",
                "tests/house/test_folders.py",
                "tests/house/test_words.py",
                "tests/docs",
                "tests/metasrv/check/test_rules_registered.py",
            ),
        ),
        ("subjects", ("python", "-m", "scripts.documents.subjects")),
        ("generated", ("python", "-m", "scripts.generate", "--check")),
    ),
)


def main() -> int:
    clock = SystemClock()
    began_ms = clock.mono_ms()
    took: list[Took] = []
    lanes.run_lanes(lane(checks, took) for checks in LANES)
    print(table(took, clock.mono_ms() - began_ms))
    return 0 if all(check.ok for check in took) else 1


def lane(checks: Sequence[Check], took: list[Took]) -> lanes.Lane:
    for name, command in checks:
        took.append((yield from run_check(name, command)))


def run_check(name: str, command: Sequence[str]) -> Generator[None, None, Took]:
    """Quiet when it passes; what it said when it does not."""
    log = LOGS / f"check-{name}.log"
    log.unlink(missing_ok=True)
    clock = SystemClock()
    started = clock.mono_ms()
    program = str(Path(sys.executable).with_name(command[0]))
    argv = limited([program, *command[1:]], PROCESSOR_LIMIT_S)
    ended = yield from lanes.run(argv, cwd=ROOT, log=log, limit_s=HANG_LIMIT_S)
    if ended.code:
        print(f"== {name}\n{log.read_text(errors='replace')}", flush=True)
    return Took(name, clock.mono_ms() - started, ended.cpu_ms, ended.code == 0)


def limited(argv: Sequence[str], processor_s: int) -> list[str]:
    """Returns the command that runs *argv*, where each process is killed once it has computed for
    *processor_s*."""
    return ["sh", "-c", f'ulimit -t {processor_s} && exec "$@"', "limited", *argv]


if __name__ == "__main__":
    with children.ended_by_signals():
        try:
            sys.exit(main())
        except KeyboardInterrupt:
            sys.exit(130)
