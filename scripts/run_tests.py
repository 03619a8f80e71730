"""Run the parts of the test suite, lanes side by side; say what passed and how long it took."""

import os
import secrets
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from metasrv.host.toolchain import read_toolchain
from metasrv.playground.ports import PORTS, shares
from metasrv_base.clock import SystemClock
from scripts import children, lanes
from scripts.parts import (
    GIVING_WAY,
    LANES,
    LONG_LANES,
    MARKS,
    NOT_BUILT,
    PARTS,
    TOTAL_LIMIT_S,
    Part,
    files_of,
    selection,
)
from scripts.report import Took, table

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".run" / "reports"
LOGS = ROOT / ".run" / "logs"
NEW_SEED = "NEW_SEED"
SEEDS = 1 << 31
NICE = ("nice", "-n", "10")
NICE_TEST_S = 1_100  # what takes minutes alone may take many beside others


@dataclass(frozen=True)
class Count:
    """Results of one part. A skip counts as a failure: what a test needs is set up or is an
    error."""

    passed: int
    failed: int

    def __add__(self, other: "Count") -> "Count":
        return Count(self.passed + other.passed, self.failed + other.failed)


Told = Generator[None, None, tuple[Count, str]]
"""Runs a part; returns its result and further lines for the report."""


def main(args: Sequence[str]) -> int:
    names = [part.name for part in PARTS]
    strange = sorted(set(args) - set(names))
    if strange:
        print(f"no such part: {', '.join(strange)}; there are {', '.join(names)}")
        return 2
    lanes_of_all = [[*short, *long] for short, long in zip(LANES, LONG_LANES, strict=True)]
    wanted = [[part for part in lane if part.name in args] for lane in lanes_of_all]
    chosen = [lane for lane in wanted if lane] if args else LANES
    run = Run(is_alone=len(chosen) == 1, ports=ports_of(chosen))
    lanes.run_lanes(run.lane(parts) for parts in chosen)
    ended = [run.ended[name] for name in names if name in run.ended]
    took = [took for took, _ in ended]
    total = sum((count for _, count in ended), Count(0, 0))
    print(f"\n{table(took, run.ms())}\n{total.passed} passed, {total.failed} failed")
    return 0 if total.passed and not total.failed and all(part.ok for part in took) else 1


def ports_of(lanes_of_parts: Sequence[Sequence[Part]]) -> dict[str, str]:
    """Returns by part the range of ports of its lane (`PORTS`): a cluster of one lane does not take
    the port of a program of another's that is down."""
    ranges = shares(len(lanes_of_parts))
    return {
        part.name: ports
        for parts, ports in zip(lanes_of_parts, ranges, strict=True)
        for part in parts
    }


class Run:
    """A lane that *is_alone* is seen as it goes; of several, each part whole when it has ended."""

    def __init__(self, *, is_alone: bool, ports: Mapping[str, str] | None = None) -> None:
        """*ports*: by part, the range that its clusters draw from; default: any."""
        self._ports = ports or {}
        self.ended: dict[str, tuple[Took, Count]] = {}
        self._is_alone = is_alone
        self._seed = drawn_seed()
        print(f"drawn anew: {NEW_SEED}={self._seed}; in the environment it repeats this run")
        self._environment = _environment(self._seed)
        self._cpu_ms: dict[str, int] = {}
        self._clock = SystemClock()
        self._began_ms = self._clock.mono_ms()

    def ms(self) -> int:
        """Since it began."""
        return self._clock.mono_ms() - self._began_ms

    def lane(self, parts: Sequence[Part]) -> lanes.Lane:
        for part in parts:
            print(f"\n== {part.name}" + ("" if self._is_alone else " has begun"), flush=True)
            began_ms, left_s = self.ms(), TOTAL_LIMIT_S - self.ms() // 1000
            limited = replace(part, limit_s=max(1, min(part.limit_s, left_s)))
            count, said = yield from self._part(limited)
            told = f"{count.passed} passed" + (f", {count.failed} failed" if count.failed else "")
            cpu_ms = self._cpu_ms.get(part.name, 0)
            took = Took(part.name, self.ms() - began_ms, cpu_ms, count.failed == 0, said or told)
            self.ended[part.name] = took, count
            if not self._is_alone:
                print(f"\n== {part.name}\n{_log_of(part).read_text(errors='replace')}", flush=True)

    def _part(self, part: Part) -> Told:
        LOGS.mkdir(parents=True, exist_ok=True)
        _log_of(part).write_text("")
        return self._command(part, part.command) if part.command else self._selection(part)

    def _selection(self, part: Part) -> Told:
        files = files_of(part.name, ROOT / "tests") if part.name in MARKS else [ROOT / "tests"]
        if not files:
            return Count(0, 0), "no tests yet"
        report = REPORTS / f"{part.name}.xml"
        report.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "pytest", "-m", selection(part.name)]
        argv += [f"--junitxml={report}", "-o", "junit_family=xunit2"]
        argv += ["-o", f"cache_dir=.run/pytest-{part.name}"]  # another lane writes there meanwhile
        argv += [f"--timeout={NICE_TEST_S}"] if self._gives_way(part) else []
        argv += split(part)
        code = yield from self._child(part, [*argv, *map(str, files)])
        if code == children.OUT_OF_TIME:
            return Count(0, 1), f"not finished after {part.limit_s} s"
        count = read_report(report.read_text()) if report.exists() else Count(0, 0)
        if code and not count.failed:
            return Count(count.passed, 1), f"pytest ended with {code}"
        return count, ""

    def _command(self, part: Part, command: Sequence[str]) -> Told:
        if part.name in NOT_BUILT:
            return Count(0, 0), "not built yet"
        program = str(Path(sys.executable).with_name(command[0]))
        words = [word.format(seed=self._seed) for word in command[1:]]
        code = yield from self._child(part, [program, *words, *split(part)])
        return (Count(0, 1), f"ended with {code}") if code else (Count(1, 0), "")

    def _child(self, part: Part, argv: Sequence[str]) -> Generator[None, None, int]:
        ended = yield from lanes.run(
            [*NICE, *argv] if self._gives_way(part) else argv,
            cwd=ROOT,
            log=None if self._is_alone else _log_of(part),
            env={**self._environment, PORTS: self._ports.get(part.name, "")},
            limit_s=part.limit_s,
        )
        self._cpu_ms[part.name] = ended.cpu_ms
        return ended.code

    def _gives_way(self, part: Part) -> bool:
        """Returns whether a part of pure computation must yield to parts that depend on real
        time."""
        return not self._is_alone and part.name in GIVING_WAY


def split(part: Part) -> list[str]:
    """The options of pytest that share its tests out among processes, one for each core."""
    return [f"--numprocesses={os.cpu_count()}", "--dist=worksteal"] if part.is_split else []


def _log_of(part: Part) -> Path:
    return LOGS / f"test-{part.name}.log"


def drawn_seed() -> int:
    """Returns a random seed, unless the environment gives one (tests/drawn.py)."""
    given = os.environ.get(NEW_SEED)
    return secrets.randbelow(SEEDS) if given is None else int(given)


def _environment(seed: int) -> Mapping[str, str]:
    """Bytecode is kept, whatever the shell says: tests start a hundred programs."""
    chosen = read_toolchain(ROOT)
    return {
        "PYTHONDONTWRITEBYTECODE": "",
        NEW_SEED: str(seed),
        **(chosen.environment(os.environ["PATH"]) if chosen else {}),
    }


def read_report(text: str) -> Count:
    """Returns the counts of pytest's JUnit report. A skipped test counts as failed."""
    ran = failed = 0
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        ran += int(suite.get("tests", "0"))
        failed += sum(int(suite.get(word, "0")) for word in ("failures", "errors", "skipped"))
    return Count(max(ran - failed, 0), failed)


if __name__ == "__main__":
    os.chdir(ROOT)
    with children.ended_by_signals():
        try:
            sys.exit(main(sys.argv[1:]))
        except KeyboardInterrupt:
            sys.exit(130)
