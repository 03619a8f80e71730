"""The founding documents as `docs/seeds.md` tells them: rows, and what is wrong with each.

A row says where a mechanism of a seed lives and which test shows it. That its paths and names
exist is checked as in every document (references.py); here, that each status has what it needs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

STATUSES = frozenset({"works", "part", "changed", "not built"})

# How many rows each document has at least: none is taken away.
ROWS_MIN: Mapping[str, int] = {"000": 45, "001": 27, "002": 126, "003": 41, "004": 20, "005": 13}
ROWS_PER_TEST_MAX = 3
"""A test shows a row; one that stands for many shows none. It only falls."""

_ROW = re.compile(r"^\| (\d{3})-(\d{2,3}) \| (.+) \| ([^|]+) \| (.+) \| (.+) \|$", re.MULTILINE)
_LINE = re.compile(r"^\| \d{3}-.*$", re.MULTILINE)
_TEST = re.compile(r"`tests/[\w/]+\.py::test_\w+`")
_DECISION = re.compile(r"\[\d{4}\]\(decisions/\d{4}-[\w-]+\.md\)")
_NEEDS = re.compile(r"\bneeds: \S")
_MISSING = re.compile(r"\bmissing: \S")


@dataclass(frozen=True)
class Row:
    """One mechanism, rule, RPC or flow of a seed. `where` is what the code has of it."""

    seed: str
    number: int
    words: str
    status: str
    where: str
    shown: str

    @property
    def name(self) -> str:
        return f"{self.seed}-{self.number:02}"


def rows_of(page: str) -> list[Row]:
    """The rows of *page*, in order. Raises ValueError for a line that only begins like one."""
    found = [Row(s, int(n), *(cell.strip() for cell in rest)) for s, n, *rest in _ROW.findall(page)]
    lines = _LINE.findall(page)
    if len(lines) != len(found):
        raise ValueError(f"{len(lines) - len(found)} rows have other cells than five")
    return found


def faults_of(rows: list[Row]) -> list[str]:
    """Returns the faults of the rows, in words."""
    faults = (f"{row.name}: {fault}" for row in rows for fault in _faults(row))
    return [*_gaps(rows), *_overworked(rows), *faults]


def summary_of(rows: list[Row]) -> list[str]:
    """The lines of the table that counts them, one for each document and one for all."""
    columns = ("works", "part", "changed", "not built")
    lines = []
    for name in (*ROWS_MIN, "all"):
        counted = Counter(row.status for row in rows if name in (row.seed, "all"))
        numbers = [*(counted[status] for status in columns), counted.total()]
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    return lines


def _gaps(rows: list[Row]) -> Iterator[str]:
    for seed, at_least in ROWS_MIN.items():
        numbers = [row.number for row in rows if row.seed == seed]
        if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < at_least:
            yield f"{seed}: {len(numbers)} rows, {at_least} at least, numbered from 1 without gaps"


def _overworked(rows: list[Row]) -> Iterator[str]:
    shown = Counter(test for row in rows for test in set(_TEST.findall(row.shown)))
    for test, count in shown.items():
        if count > ROWS_PER_TEST_MAX:
            yield f"{test} stands for {count} rows, {ROWS_PER_TEST_MAX} at most"


def _faults(row: Row) -> Iterator[str]:
    if row.status not in STATUSES:
        yield f"no such status: {row.status}"
    if row.status == "not built":
        if not _NEEDS.search(row.shown):
            yield "does not say what would build it"
        return
    if row.where == "—":
        yield "does not say where"
    if not _TEST.search(row.shown):
        yield "no test shows it"
    if row.status == "changed" and not _DECISION.search(row.shown):
        yield "no decision record says what does its work"
    if row.status == "part" and not _MISSING.search(row.shown):
        yield "does not say what is missing"
