"""The founding documents as `docs/seeds.md` tells them: rows, and what is wrong with each.

A row says where a mechanism of a seed lives and which test shows it. That its paths and names
exist is checked as in every document (references.py); here, that each status has what it needs.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

ISSUES = frozenset({"foundation", "online change", "catalog", "cluster", "security"})
STATUSES = ISSUES | {"done", "changed", "context"}

# How many rows each document has at least: none is taken away.
ROWS_MIN: Mapping[str, int] = {"000": 44, "001": 27, "002": 120, "003": 30, "004": 19}

_ROW = re.compile(r"^\| (\d{3})-(\d{2,3}) \| (.+) \| ([^|]+) \| (.+) \| (.+) \|$", re.MULTILINE)
_LINE = re.compile(r"^\| \d{3}-.*$", re.MULTILINE)
_TEST = re.compile(r"`tests/[\w/]+\.py::test_\w+`")
_DECISION = re.compile(r"\[\d{4}\]\(decisions/\d{4}-[\w-]+\.md\)")


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
    """What is wrong with them, in words; nothing: all is in order."""
    return [*_gaps(rows), *(f"{row.name}: {fault}" for row in rows for fault in _faults(row))]


def _gaps(rows: list[Row]) -> Iterator[str]:
    for seed, at_least in ROWS_MIN.items():
        numbers = [row.number for row in rows if row.seed == seed]
        if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < at_least:
            yield f"{seed}: {len(numbers)} rows, {at_least} at least, numbered from 1 without gaps"


def _faults(row: Row) -> Iterator[str]:
    if row.status not in STATUSES:
        yield f"no such status: {row.status}"
    if row.status == "done" and row.where == "—":
        yield "does not say where"
    if row.status == "done" and not _TEST.search(row.shown):
        yield "no test shows it"
    if row.status == "changed" and not _DECISION.search(row.shown):
        yield "no decision record says what does its work"
    if row.status == "changed" and not _TEST.search(row.shown):
        yield "no test shows what does its work"
