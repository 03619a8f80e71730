"""The parts of the tests, in lanes: which tests each runs, and how long it may take.

Every test is in exactly one part: that of the first of its marks in `MARKS`, else `fast`.
`make test` runs `LANES`, `make test-long` runs `LONG_LANES`, and .ci/run both.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# `make test` is to take 12 minutes on two quiet cores, and .ci/run 40. These limits are for what
# hangs: machines of 0.4 times that speed have been seen, and find nothing else than a fast one.
TOTAL_LIMIT_S = 4_200

MARKS = (
    "long",
    "demo",
    "spark",
    "packaging",
    "process",
    "slow",
    "etcd",
    "sim",
    "badinput",
    "crash",
)
WRITTEN = re.compile(rf"\bmark\.({'|'.join(MARKS)})\b")


@dataclass(frozen=True)
class Part:
    """`command` is None for a part that is a selection of tests."""

    name: str
    limit_s: int
    command: tuple[str, ...] | None = None
    is_split: bool = False
    """Whether as many processes run it as there are cores. What lives in real time is not: the port
    of a program that is down would be given to another's."""


def selection(name: str) -> str:
    """The pytest `-m` expression of a part: its mark, and none that comes before."""
    if name == "fast":
        return " and ".join(f"not {mark}" for mark in MARKS)
    before = MARKS[: MARKS.index(name)]
    return " and ".join([name, *(f"not {mark}" for mark in before)])


def property_tests() -> str:
    """The pytest `-m` expression of those that need nothing but memory."""
    return " and ".join(["hypothesis", *(f"not {mark}" for mark in MARKS if mark != "slow")])


DRAWN = (
    "pytest",
    f"-m{property_tests()}",
    "--hypothesis-profile=drawn",
    "--hypothesis-seed={seed}",
    "-ocache_dir=.run/pytest-drawn",
)
"""The property tests once more, with examples of the seed that this run has drawn."""

# What computes, most of it in virtual time; then wheels and environments that are made. It gives
# way to the other lane, so its limits are wide.
IN_MEMORY = (
    Part("fast", 1_200, is_split=True),
    Part("crash", 2_400, is_split=True),
    Part("badinput", 960, is_split=True),
    Part("slow", 1_800, is_split=True),
    Part("packaging", 1_800),
)
# What lives in real time and mostly waits: one after another.
IN_REAL_TIME = (
    Part("etcd", 840),
    Part("process", 2_400),
    Part("spark", 1_200),
    Part("demo", 480),
)
# Another cluster, which has ports of its own (scripts/run_tests.py): the lanes end together.
STORY = Part("story", 840, ("metasrv", "demo", "--rows", "20000"))
LANES = ((*IN_MEMORY, STORY), IN_REAL_TIME)

LONG_IN_MEMORY = (Part("sim", 3_600), Part("drawn", 960, DRAWN, is_split=True))
LONG_IN_REAL_TIME = (Part("long", 3_600),)
LONG_LANES = (LONG_IN_MEMORY, LONG_IN_REAL_TIME)

PARTS = tuple(part for lane in (*LANES, *LONG_LANES) for part in lane)
GIVING_WAY = frozenset(part.name for part in (*IN_MEMORY, *LONG_IN_MEMORY))

# A command that this checkout does not have yet; remove the name when it has.
NOT_BUILT: frozenset[str] = frozenset()


def files_of(mark: str, tests: Path) -> list[Path]:
    """The files that may hold a test of that mark, so that its part imports no others: those that
    write it, and all under a `conftest.py` that does. tests/conftest.py refuses a test that has a
    mark from elsewhere.
    """
    return [path for path in sorted(tests.rglob("test_*.py")) if mark in marks_of(path, tests)]


def marks_of(file: Path, tests: Path) -> frozenset[str]:
    """The marks in the text of a test file, and of each `conftest.py` from there up to *tests*."""
    above = [folder / "conftest.py" for folder in file.parents if folder.is_relative_to(tests)]
    return frozenset().union(*map(_written, [file, *above]))


@cache
def _written(file: Path) -> frozenset[str]:
    return frozenset(WRITTEN.findall(file.read_text())) if file.exists() else frozenset()
