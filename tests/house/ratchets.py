"""Faults of words, counted per file; a ratchet is a baseline that may fall and never rise.

`python -m tests.house.ratchets` lowers a baseline to the counts of today; it never raises one.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.documents.facts import Facts, facts
from scripts.documents.references import PACKAGES

ROOT = Path(__file__).parents[2]
VAGUE = frozenset(
    {"found", "one", "at", "asked", "known", "wanted", "seen", "place"}
    | {"judge", "judged", "judges", "said", "told", "wish", "wishes"}
    | {"given", "taken", "news", "heard", "run_at_pace"}
)
OPENING = re.compile(r"\W*(Of|What|Who|How|That|Those|Which)\b")
FRAGMENT = re.compile(
    r"\W*((By|In|As|Where|With|Without|Under|Behind|Up|Again|It)\b|(None|True|False):)"
    r"|\*\w+\*( and \*\w+\*)?:"
)

EVERYWHERE = (*PACKAGES, "scripts", "benchmarks", "tests")

Counts = Mapping[str, int]
"""Path of a file -> its faults, for files that have any."""


@dataclass(frozen=True)
class Ratchet:
    name: str
    tops: tuple[str, ...]
    faults: Callable[[Facts], int]
    """Counts the faults of a file."""

    @property
    def path(self) -> Path:
        return Path(__file__).with_name(f"{self.name}.json")

    def allowed(self) -> Counts:
        counts: dict[str, int] = json.loads(self.path.read_text())
        return counts

    def counted(self) -> Counts:
        return counted(self.tops, self.faults)


def counted(tops: Iterable[str], faults: Callable[[Facts], int]) -> Counts:
    """Counts the faults of every file below *tops*."""
    files = [file for top in tops for file in sorted((ROOT / top).rglob("*.py"))]
    counts = {file.relative_to(ROOT).as_posix(): faults(facts(file)) for file in files}
    return {file: count for file, count in sorted(counts.items()) if count}


def bindings(file: Facts) -> int:
    """Counts variables, parameters, fields and functions that say how a value came, not what it
    is."""
    return sum(name in VAGUE for name in (*file.bound, *file.functions))


def openings(file: Facts) -> int:
    """Counts docstrings, those of fields included, whose first word makes the reader guess."""
    return sum(OPENING.match(text) is not None for text in file.texts)


def fragments(file: Facts) -> int:
    """Counts docstrings, those of fields included, that begin with a parameter, or with words that
    open no sentence about the thing itself."""
    return sum(FRAGMENT.match(text) is not None for text in file.texts)


VAGUE_NAMES = Ratchet("vague_names", PACKAGES, bindings)
"""Names of fields that are sent or printed as JSON stay."""

RATCHETS = (VAGUE_NAMES,)


def excess(allowed: Counts, counts: Counts) -> Mapping[str, tuple[int, int]]:
    """Returns (faults, faults allowed) of each file that has more than it may."""
    return {
        file: (count, allowed.get(file, 0))
        for file, count in counts.items()
        if count > allowed.get(file, 0)
    }


def lowered(allowed: Counts, counts: Counts) -> Counts:
    """Returns the counts allowed from now on, without files that have no fault left."""
    lower = {file: min(limit, counts.get(file, 0)) for file, limit in allowed.items()}
    return {file: limit for file, limit in lower.items() if limit}


if __name__ == "__main__":
    for ratchet in RATCHETS:
        limits = lowered(ratchet.allowed(), ratchet.counted())
        ratchet.path.write_text(json.dumps(limits, indent=1) + "\n")
