"""A breakage: an action past all checks, and the keys or files that must be named for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.metasrv.check.cluster import Cluster

Run = Callable[[Cluster], Awaitable[set[str] | str]]


@dataclass(frozen=True, slots=True)
class Breakage:
    """`run` breaks exactly the rule, and answers which subjects `check` must name for it."""

    rule: str
    run: Run

    @property
    def name(self) -> str:
        return f"{self.rule}-{self.run.__name__}"
