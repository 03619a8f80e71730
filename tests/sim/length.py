"""The amount of work in a world: a long life, or a short one, of which many can be lived."""

from dataclasses import dataclass
from typing import NamedTuple

from dataplane.region.place import RegionLimits

SMALL = RegionLimits(memtable_bytes=64 << 10, flush_age_ms=20_000)


@dataclass(frozen=True)
class Length:
    """The amounts of a life. The counts of one client are upper bounds."""

    name: str
    writers: int
    users: int
    """Users of frontends."""
    scans: int
    """By indexes, page by page."""
    statements: int
    """Statements of one writer, or user."""
    changes: int
    """Changes of the table that changes its shape."""
    owned: int
    """Changes of one owner of tables."""
    reads: int
    faults_min: int
    faults_max: int
    faults_ms: int
    """In which they begin."""
    nodes: int = 3
    limits: RegionLimits = SMALL
    """Limits of a region: its memory is flushed above these bytes, and when it is that old."""


LONG = Length(
    name="long",
    writers=2,
    users=3,
    scans=12,
    statements=38,
    changes=8,
    owned=8,
    reads=6,
    faults_min=8,
    faults_max=14,
    faults_ms=25_000,
)
SHORT = Length(
    name="short",
    writers=1,
    users=2,
    scans=6,
    statements=9,
    changes=4,
    owned=1,
    reads=1,
    faults_min=2,
    faults_max=3,
    faults_ms=5_000,
)
FIRST_SHORT = 21
"""The first seed that CI lives short; those before it are lived long."""


class Life(NamedTuple):
    """The identity of a life: with the code, all that its history depends on."""

    seed: int
    length: Length = LONG

    def __str__(self) -> str:
        return f"{self.length.name}-{self.seed}"

    @property
    def command(self) -> str:
        """Lives it again."""
        again = f"make sim SEEDS=1 FIRST={self.seed}"
        return again if self.length is LONG else f'{again} ARGS="--length {self.length.name}"'
