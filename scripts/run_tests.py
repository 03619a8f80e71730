"""Run the parts of the test suite in order, and say at the end what passed and how long it took."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from base.clock import SystemClock
from metasrv.toolchain import read_toolchain
from scripts import children
from scripts.parts import MARKS, NOT_BUILT, PARTS, TOTAL_LIMIT_S, Part, selection
from scripts.report import Took, table

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".run" / "reports"
OUT_OF_TIME = 124


@dataclass(frozen=True)
class Count:
    """What one part found. A skip is a failure: what a test needs is set up or is an error."""

    passed: int
    failed: int

    def __add__(self, other: "Count") -> "Count":
        return Count(self.passed + other.passed, self.failed + other.failed)


def main(args: Sequence[str]) -> int:
    names = [part.name for part in PARTS]
    strange = sorted(set(args) - set(names))
    if strange:
        print(f"no such part: {', '.join(strange)}; there are {', '.join(names)}")
        return 2
    took: list[Took] = []
    total = Count(0, 0)
    for part in PARTS:
        if not args or part.name in args:
            left_s = TOTAL_LIMIT_S - sum(one.ms for one in took) // 1000
            done, count = run_part(replace(part, limit_s=max(1, min(part.limit_s, left_s))))
            took.append(done)
            total += count
    print(f"\n{table(took)}\n{total.passed} passed, {total.failed} failed")
    return 0 if total.passed and not total.failed and all(part.ok for part in took) else 1


def run_part(part: Part) -> tuple[Took, Count]:
    print(f"\n== {part.name}", flush=True)
    clock = SystemClock()
    started = clock.mono_ms()
    count, said = _run_command(part) if part.command else _run_selection(part)
    told = f"{count.passed} passed" + (f", {count.failed} failed" if count.failed else "")
    ok = count.failed == 0
    return Took(part.name, clock.mono_ms() - started, ok, said or told), count


def _run_selection(part: Part) -> tuple[Count, str]:
    if part.name in MARKS and not _is_used(part.name):
        return Count(0, 0), "no tests yet"
    report = REPORTS / f"{part.name}.xml"
    report.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "pytest", "-m", selection(part.name)]
    argv += [f"--junitxml={report}", "-o", "junit_family=xunit2"]
    code = children.run(argv, cwd=ROOT, env=_environment(), limit_s=part.limit_s)
    if code == OUT_OF_TIME:
        return Count(0, 1), f"not finished after {part.limit_s} s"
    count = read_report(report.read_text()) if report.exists() else Count(0, 0)
    if code and not count.failed:
        return Count(count.passed, 1), f"pytest ended with {code}"
    return count, ""


def _run_command(part: Part) -> tuple[Count, str]:
    assert part.command is not None
    if part.name in NOT_BUILT:
        return Count(0, 0), "not built yet"
    program = str(Path(sys.executable).with_name(part.command[0]))
    argv = [program, *part.command[1:]]
    code = children.run(argv, cwd=ROOT, env=_environment(), limit_s=part.limit_s)
    return (Count(0, 1), f"ended with {code}") if code else (Count(1, 0), "")


def _environment() -> dict[str, str]:
    """Bytecode is kept, whatever the shell says: tests start a hundred programs."""
    chosen = read_toolchain(ROOT)
    return {
        "PYTHONDONTWRITEBYTECODE": "",
        **(chosen.environment(os.environ["PATH"]) if chosen else {}),
    }


def read_report(text: str) -> Count:
    """From pytest's JUnit report. A skipped test counts as failed."""
    ran = failed = 0
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        ran += int(suite.get("tests", "0"))
        failed += sum(int(suite.get(word, "0")) for word in ("failures", "errors", "skipped"))
    return Count(max(ran - failed, 0), failed)


def _is_used(mark: str) -> bool:
    """Does any test carry the mark? Then a part that runs none has lost them, and fails."""
    word = re.compile(rf"mark\.{mark}\b")
    return any(word.search(path.read_text()) for path in (ROOT / "tests").rglob("*.py"))


if __name__ == "__main__":
    os.chdir(ROOT)
    with children.ended_by_signals():
        try:
            sys.exit(main(sys.argv[1:]))
        except KeyboardInterrupt:
            sys.exit(130)
