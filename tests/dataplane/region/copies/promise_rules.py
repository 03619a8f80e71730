"""Rules of promises in random schedules: those of the product; a planted bug replaces one."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from dataplane.region.copies.promises import (
    CopyHere,
    GivenPromises,
    PromiseRefusal,
    ReceivedPromises,
    refusal,
)

Refusal = Callable[[CopyHere | None, str, int], PromiseRefusal | None]


@dataclass
class Lead:
    """A node that leads, or has not heard that it does no more."""

    epoch: int
    members: frozenset[int]
    """As last read from the route."""
    joining: int | None = None
    """A learner that it has asked to add."""
    has_asked: bool = False
    """Whether it has asked that a copy leaves, or was told that one is about to be removed, and has
    not read another route since."""
    rows: int = 0
    following: frozenset[int] = frozenset()
    """Nodes that it knows to follow its epoch."""

    @property
    def required(self) -> frozenset[int]:
        return self.members if self.joining is None else self.members | {self.joining}


def every_copy(lead: Lead) -> frozenset[int]:
    return lead.required


def may_be_alone(lead: Lead) -> bool:
    return len(lead.members) - lead.has_asked <= 1


def those_that_follow(lead: Lead) -> frozenset[int]:
    return lead.following


@dataclass(frozen=True)
class PromiseRules:
    """The parts of the product; a planted bug replaces one."""

    given: Callable[[int], GivenPromises] = GivenPromises
    received: Callable[[], ReceivedPromises] = ReceivedPromises
    refusal: Refusal = refusal
    needed: Callable[[Lead], Collection[int]] = every_copy
    """The copies whose promises a leader needs, itself perhaps among them."""
    shrinks_to_one: bool = False
    """A set may shrink to its leader, which serves by a lease, and is taken over from."""
    leased: Callable[[Lead], bool] = may_be_alone
    """Whether a leader needs its lease too: whoever takes over from one that is alone waits for
    that, and for no promise."""
    borrows_served: bool = True
    """Nobody takes over from a promoted leader that has not served."""
    is_told: bool = True
    """The last other copy of a set is removed once the leader has answered that it knows."""
    waits: bool = True
    """A promoted copy waits for its own promise."""
    grows_after: bool = True
    """A promoted leader asks for no copy to be added before its own promise has ended."""
    gave_up: Callable[[Lead], Collection[int]] = those_that_follow
    """The nodes whose promises are over before their time, if they led before."""
    counts_suspended: bool = True
    """Clocks go on while their machine is suspended."""
    counts_answer: bool = False
    """A leader counts from the answer."""
