"""`python -m benchmarks.targets [WORD...]`: each figure that is promised, beside its target.

Runs the measurements that the rows below name, one after the other, and picks its figure from what
each prints; WORDs choose the measurements by name. *at least* is what must hold, *goal* what is
wished for; with `<` the figure is a cost, with `>` a ratio or a rate. Minutes; nothing else should
run on the machine meanwhile.
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


def run(command: tuple[str, ...]) -> list[str]:
    """Runs a measurement and returns the lines that it printed; prints them as well."""
    module, *rest = command
    argv = [sys.executable, "-m", f"benchmarks.{module}", *rest]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    return done.stdout.splitlines()


def show(found: Mapping[Target, float | None]) -> None:
    print(f"{'work':60}{'now':>12}{'at least':>12}{'goal':>10}")
    for target, figure in found.items():
        name = " ".join((*target.command, target.label.strip(" /")))
        value, verdict = "-", "not measured: see above"
        if figure is not None:
            value, verdict = f"{figure:,.3f}", target.verdict(figure)
        sign = target.better
        print(
            f"{name:60}{value:>12}{sign + f' {target.at_least:g}':>12}{target.goal:>10g}  {verdict}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.targets", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="rows, creates, ...")
    words = parser.parse_args().words
    found: dict[Target, float | None] = {}
    for command in dict.fromkeys(target.command for target in TARGETS):
        if words and not set(words) & {*command, command[0].rpartition(".")[2]}:
            continue
        mine = [target for target in TARGETS if target.command == command]
        found |= dict.fromkeys(mine)
        found.update(figures(run(command), mine))
    show(found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
