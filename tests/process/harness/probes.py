"""Results of a scenario: numbers for people, and every promise that was broken."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    numbers: Mapping[str, object]
    wrong: tuple[str, ...]
    """Empty: all of it held."""

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.numbers.items())


def must(**promises: bool) -> tuple[str, ...]:
    """The names of those that were not kept."""
    return tuple(name.replace("_", " ") for name, kept in promises.items() if not kept)
