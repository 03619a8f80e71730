"""`python -m benchmarks.targets [WORD...]`: each figure that is promised, beside its target.

Runs the measurements that the rows below name, one after the other, and picks its figure from what
each prints; WORDs choose the measurements by name. *at least* is what must hold, *goal* what is
wished for; with `<` the figure is a cost, with `>` a ratio or a rate. A measurement that fails has
no figures. Ends with 1 if a figure was not measured, and with 0 if one is missed: that is a result.
Minutes; nothing else should run on the machine meanwhile.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    command: tuple[str, ...]
    """A module of `benchmarks`, and its arguments."""
    label: str
    """The first characters of the line with the figure."""
    better: str
    """`<`: a cost; `>`: a ratio or a rate."""
    at_least: float
    goal: float

    def verdict(self, value: float) -> str:
        if self._holds(value, self.goal):
            return "goal"
        return "holds" if self._holds(value, self.at_least) else "MISSED"

    def _holds(self, value: float, bound: float) -> bool:
        return value <= bound if self.better == "<" else value >= bound


COSTS = ("data.region_costs",)
ROWS = ("data.rows",)
CREATES = ("service.creates",)
METASTORES = ("service.metastores",)
MOVES = ("data.failovers", "--mib", "1024")
TARGETS = (
    Target(COSTS, "one-row statement of 10 columns, us", "<", 300, 150),
    Target(COSTS, "its bytes in the log, groups of 64, B", "<", 500, 250),
    Target(COSTS, "insert of a key that must be absent, 8 files", "<", 20, 8),
    Target(COSTS, "flush and merge, us a row written", "<", 1.0, 0.6),
    Target(COSTS, "column with an origin default, us a row read", "<", 0.02, 0.005),
    Target(COSTS, "opening with 20,000 statements in the log, ms", "<", 400, 150),
    Target(ROWS, "scan, frontend / scan, pyarrow.dataset", ">", 0.25, 0.5),
    Target(ROWS, "scan, frontend / scan, PostgreSQL COPY TO", ">", 1.2, 2),
    Target(ROWS, "point read p50 ms, frontend, 1 ", "<", 2.5, 1),
    Target(ROWS, "point read, frontend, 16 / ", ">", 0.12, 0.3),
    Target(ROWS, "insert, frontend, 1 / ", ">", 0.6, 1),
    Target(ROWS, "insert, frontend, 4 / ", ">", 0.5, 1),
    Target(ROWS, "delete of 10,000 under a unique index, s", "<", 2, 0.5),
    Target(ROWS, "import, metasrv / import, PostgreSQL COPY", ">", 1, 3),
    Target(("schema.backfills",), "Spark to PostgreSQL", ">", 0.7, 1),
    Target(("schema.backfills", "--large"), "Spark to PostgreSQL", ">", 0.7, 1),
    Target(MOVES, "Spark / cp -r and fsync, warm", ">", 0.35, 0.5),
    Target(MOVES, "Spark / cp -r and fsync, cold", ">", 0.35, 0.5),
    Target(("data.switches",), "gap of a switch p99, ms", "<", 250, 100),
    Target(("schema.foreground",), "paced: p99 / nothing beside", "<", 2, 1.3),
    Target(("schema.foreground",), "paced: p99 / the index is there", "<", 1.3, 1),
    Target(CREATES, "rate at 32 clients / raw", ">", 0.22, 0.3),
    Target(CREATES, "latency at one client / raw", "<", 4, 2.5),
    Target(METASTORES, "metasrv / Hive Metastore, 1 client ", ">", 1.3, 2),
    Target(METASTORES, "metasrv / Hive Metastore, 32 clients", ">", 2.5, 3),
)

_LINE = re.compile(r"\s*(\S.*?)\s{2,}(-?[\d,]+(?:\.\d+)?)")


def figures(lines: Iterable[str], targets: Sequence[Target]) -> Iterator[tuple[Target, float]]:
    """The figure of each target whose label begins one of the lines."""
    for match in filter(None, map(_LINE.match, lines)):
        name, figure = match.groups()
        for target in targets:
            if f"{name} ".startswith(target.label):
                yield target, float(figure.replace(",", ""))


@dataclass(frozen=True, slots=True)
class Report:
    """A measurement that has ended."""

    code: int
    """Its exit code; negative: the signal that ended it."""
    lines: Sequence[str] = ()

    def results(self, targets: Sequence[Target]) -> dict[Target, float | str]:
        """Returns the figure of each target, or the reason why there is none."""
        if self.code != 0:
            return dict.fromkeys(targets, f"its run failed with {self.code}: see above")
        missing = dict.fromkeys(targets, "not measured: see above")
        return {**missing, **dict(figures(self.lines, targets))}


def run(command: tuple[str, ...]) -> Report:
    """Runs a measurement and prints its report."""
    module, *rest = command
    argv = [sys.executable, "-m", f"benchmarks.{module}", *rest]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    return Report(done.returncode, done.stdout.splitlines())


def show(results: Mapping[Target, float | str]) -> int:
    """Prints the table; returns 1 if a figure was not measured."""
    print(f"{'work':60}{'now':>12}{'at least':>12}{'goal':>10}")
    for target, result in results.items():
        name = " ".join((*target.command, target.label.strip(" /")))
        if isinstance(result, str):
            value, verdict = "-", result
        else:
            value, verdict = f"{result:,.3f}", target.verdict(result)
        sign = target.better
        print(
            f"{name:60}{value:>12}{sign + f' {target.at_least:g}':>12}{target.goal:>10g}  {verdict}"
        )
    return 1 if any(isinstance(result, str) for result in results.values()) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.targets", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="rows, creates, ...")
    words = parser.parse_args().words
    results: dict[Target, float | str] = {}
    for command in dict.fromkeys(target.command for target in TARGETS):
        if words and not set(words) & {*command, command[0].rpartition(".")[2]}:
            continue
        mine = [target for target in TARGETS if target.command == command]
        results |= run(command).results(mine)
    return show(results)


if __name__ == "__main__":
    raise SystemExit(main())
