"""Everything a machine can say about the code without running it: `make check`."""

import sys
from pathlib import Path

from base.clock import SystemClock
from scripts import children
from scripts.report import Took, table

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".run" / "logs"
LIMIT_S = 110

CHECKS = (
    ("format", ("ruff", "format", "--check", ".")),
    ("lint", ("ruff", "check", "--output-format=concise", ".")),
    ("types", ("mypy",)),
    ("contracts", ("lint-imports", "--cache-dir", ".run/import-linter")),
    ("tidy", ("pytest", "tests/test_tidy.py", "tests/docs", "tests/check/test_registry.py")),
    ("generated", ("python", "-m", "scripts.generate", "--check")),
)


def main() -> int:
    took = [run_check(name, command) for name, command in CHECKS]
    print(table(took))
    return 0 if all(check.ok for check in took) else 1


def run_check(name: str, command: tuple[str, ...]) -> Took:
    """Quiet when it passes; what it said when it does not."""
    log = LOGS / f"check-{name}.log"
    log.unlink(missing_ok=True)
    clock = SystemClock()
    started = clock.mono_ms()
    program = str(Path(sys.executable).with_name(command[0]))
    code = children.run([program, *command[1:]], cwd=ROOT, log=log, limit_s=LIMIT_S)
    if code:
        print(f"== {name}\n{log.read_text(errors='replace')}", flush=True)
    return Took(name, clock.mono_ms() - started, code == 0)


if __name__ == "__main__":
    with children.ended_by_signals():
        try:
            sys.exit(main())
        except KeyboardInterrupt:
            sys.exit(130)
