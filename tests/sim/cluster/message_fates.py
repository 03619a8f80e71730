"""The fate of a message: drawn by the seed, by the weather, and by which links are cut."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

STORE = "etcd"
QUICK_MS = (0.1, 3.0)
SLOW_MS = (20.0, 1_500.0)
LATE_MS = (3_000.0, 30_000.0)


class Fate(StrEnum):
    FINE = "fine"
    SLOW = "slow"
    LOST = "lost"
    """It never arrives, and nobody says so."""
    UNANSWERED = "unanswered"
    """It arrives and is carried out; the answer is lost."""
    LATE = "late"
    """It arrives when its sender has given up: perhaps after a new leader."""
    TWICE = "twice"
    """A second copy comes late."""
    REFUSED = "refused"
    """It was never sent, and its sender knows."""


BAD = {
    Fate.SLOW: 0.05,
    Fate.LOST: 0.02,
    Fate.UNANSWERED: 0.03,
    Fate.LATE: 0.015,
    Fate.TWICE: 0.03,
    Fate.REFUSED: 0.01,
}
"""Chances of a message while it storms."""


@dataclass
class Weather:
    """One for the world. Hosts are names; a link has a direction."""

    random: Random
    storm: float = 0.0
    """0: nothing is lost; 1: as `BAD` says."""
    store_storm: float = 0.0
    """The same for messages to the store."""
    is_down: bool = False
    """The store refuses every call."""
    downs: int = 0
    """Number of outages: a watch from before one does not go on."""
    is_full: bool = False
    """The store takes no puts."""
    job_fails: float = 0.0
    """The chance of a piece of a job to fail."""
    is_tried: bool = False
    """Whether the calm of the beginning is over."""
    troubles: int = 0
    """Faults that have begun, and are not over."""
    doomed: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Host -> what befalls it with its next transaction, which arrives late."""
    doubts: list[Callable[[Sequence[bytes]], bool]] = field(default_factory=list)
    """Each says of the keys that a leader writes whether the answer is to be lost."""
    cut: set[tuple[str, str]] = field(default_factory=set)
    deaf: set[str] = field(default_factory=set)
    """Nodes that take no orders, and answer none; all else goes on."""
    compactions: Counter[str] = field(default_factory=Counter)
    """Host -> so many of its next reads at a revision find the store compacted above it."""
    sometimes: Counter[str] = field(default_factory=Counter)
    """Rare things, and how often each happened."""

    def is_compacted_under(self, host: str) -> bool:
        """Whether an operator compacts the store just before a read of *host* at a revision."""
        is_so = self.compactions[host] > 0
        self.compactions[host] -= is_so
        return is_so

    def fate(self, source: str, target: str) -> Fate:
        if self.is_cut(source, target):
            self.sometimes["a message into a cut link"] += 1
            return Fate.LOST
        if target == STORE and self.is_down:
            return Fate.REFUSED
        strength = self.store_storm if target == STORE else self.storm
        drawn = self.random.random()
        for fate, chance in BAD.items():
            drawn -= chance * strength
            if drawn < 0:
                self.sometimes[f"a message {fate}"] += 1
                return fate
        return Fate.FINE

    def fate_of_write(self, source: str, keys: Sequence[bytes]) -> Fate:
        """Draws the fate of a transaction with the store that writes *keys*."""
        if True in [meets(keys) for meets in [*self.doubts]]:  # each hears of them
            return Fate.UNANSWERED
        doom = self.doomed.pop(source, None)
        if doom is None:
            return self.fate(source, STORE)
        doom()
        self.sometimes["a write that arrives after its leader"] += 1
        return Fate.LATE

    def way_ms(self, fate: Fate) -> float:
        """Draws the travel time of a message."""
        ranges = {Fate.SLOW: SLOW_MS, Fate.LATE: LATE_MS}
        return self.random.uniform(*ranges.get(fate, QUICK_MS))

    def is_cut(self, source: str, target: str) -> bool:
        links = ((source, target), (source, "*"), ("*", target))
        return not self.cut.isdisjoint(links)

    def clear(self) -> None:
        """All is well from now on."""
        self.storm = self.store_storm = self.job_fails = 0.0
        self.is_full = False
        self.cut.clear()
        self.deaf.clear()
        self.doomed.clear()
        self.compactions.clear()


def host_of(node: str) -> str:
    """Returns the host of a process, which is named by its host and a number of its own."""
    return node.partition("#")[0]
