"""The parts of `make test`, in order: which tests each runs, and how long it may take.

Every test is in exactly one part: that of the first of its marks in `MARKS`, else `fast`.
"""

from dataclasses import dataclass

# .ci/run has 25 minutes, of which set-up and the checks take some.
TOTAL_LIMIT_S = 1380

MARKS = ("demo", "spark", "process", "slow", "etcd", "sim", "badinput", "crash")


@dataclass(frozen=True)
class Part:
    """`command` is None for a part that is a selection of tests."""

    name: str
    limit_s: int
    command: tuple[str, ...] | None = None


PARTS = (
    Part("fast", 240),
    Part("crash", 420),
    Part("badinput", 120),
    Part("sim", 180),
    Part("etcd", 420),
    Part("process", 780),
    Part("slow", 180),
    Part("spark", 360),
    Part("demo", 240),
    Part("story", 300, ("metasrv", "demo", "--rows", "20000")),
)

# A command that this checkout does not have yet; remove the name when it has.
NOT_BUILT: frozenset[str] = frozenset()


def selection(name: str) -> str:
    """The pytest `-m` expression of a part: its mark, and none that comes before."""
    if name == "fast":
        return " and ".join(f"not {mark}" for mark in MARKS)
    before = MARKS[: MARKS.index(name)]
    return " and ".join([name, *(f"not {mark}" for mark in before)])
