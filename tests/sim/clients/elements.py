"""Elements of a table that changes, and when statements may meet them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.sim.checks.oracle import NEVER

NULL = "null"


@dataclass(eq=False)
class Way:
    """The move of an element, in or out, by one change."""

    began: float
    ended: float = NEVER
    """When it was done; NEVER: it is not known to be."""
    refused: bool = False
    over: float = NEVER
    """When it was known to be undone."""

    def overlaps(self, began: float, ended: float) -> bool:
        return self.began <= ended and began <= min(self.ended, self.over)


@dataclass(eq=False)
class Element:
    """A column or an index, which no other ever has the name of."""

    name: str
    comes: Way
    goes: list[Way] = field(default_factory=list)

    def is_there(self, began: float, ended: float) -> bool:
        """Whether all of a statement that was sent at *began* and answered at *ended* had it."""
        return self.comes.ended <= began and not any(
            way.began <= ended and not (way.refused and way.over <= began) for way in self.goes
        )

    def may_be_there(self, began: float, ended: float) -> bool:
        if self.comes.began > ended or (self.comes.refused and self.comes.over < began):
            return False
        return not any(way.ended <= began for way in self.goes)

    def is_moving(self, began: float, ended: float) -> bool:
        return any(way.overlaps(began, ended) for way in (self.comes, *self.goes))


def text_of(value: object) -> str:
    return NULL if value is None else str(value)


def standing(elements: Iterable[Element], now: float) -> list[str]:
    """Names of those that are there."""
    return [one.name for one in elements if one.is_there(now, now)]
