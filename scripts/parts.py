"""The parts of `make test`, in two lanes: which tests each runs, and how long it may take.

Every test is in exactly one part: that of the first of its marks in `MARKS`, else `fast`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

# .ci/run is to take 25 minutes at most. This limit is for what hangs: where the cores are at half
# their speed all takes twice as long, and a slow machine finds nothing else than a fast one.
TOTAL_LIMIT_S = 2_400

MARKS = ("demo", "spark", "process", "slow", "etcd", "sim", "badinput", "crash")


@dataclass(frozen=True)
class Part:
    """`command` is None for a part that is a selection of tests."""

    name: str
    limit_s: int
    command: tuple[str, ...] | None = None


def selection(name: str) -> str:
    """The pytest `-m` expression of a part: its mark, and none that comes before."""
    if name == "fast":
        return " and ".join(f"not {mark}" for mark in MARKS)
    before = MARKS[: MARKS.index(name)]
    return " and ".join([name, *(f"not {mark}" for mark in before)])


DRAWN = (
    "pytest",
    f"-mhypothesis and {selection('fast')}",
    "--hypothesis-profile=drawn",
    "--hypothesis-seed={seed}",
    "-ocache_dir=.run/pytest-drawn",
)
"""The property tests once more, with examples of the seed that this run has drawn."""

# What computes, most of it in virtual time. It gives way to the other lane, so its limits are wide.
IN_MEMORY = (
    Part("fast", 900),
    Part("crash", 1_200),
    Part("badinput", 480),
    Part("slow", 480),
    Part("sim", 1_200),
    Part("drawn", 480, DRAWN),
)
# What lives in real time and mostly waits: one after another, so that the ports of a program that
# is down are given to nobody else.
IN_REAL_TIME = (
    Part("etcd", 420),
    Part("process", 1_200),
    Part("spark", 600),
    Part("demo", 240),
    Part("story", 420, ("metasrv", "demo", "--rows", "20000")),
)
LANES = (IN_MEMORY, IN_REAL_TIME)
PARTS = tuple(part for lane in LANES for part in lane)

# A command that this checkout does not have yet; remove the name when it has.
NOT_BUILT: frozenset[str] = frozenset()


def files_of(mark: str, tests: Path) -> list[Path]:
    """The files that may hold a test of that mark, so that its part imports no others: those that
    write it, and all under a `conftest.py` that does. tests/conftest.py refuses a test that has a
    mark from elsewhere.
    """
    word = re.compile(rf"\bmark\.{mark}\b")
    writing = {path for path in tests.rglob("*.py") if word.search(path.read_text())}
    folders = {path.parent for path in writing if path.name == "conftest.py"}
    return [
        path
        for path in sorted(tests.rglob("test_*.py"))
        if path in writing or folders & {*path.parents}
    ]
