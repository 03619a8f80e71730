"""Chance as a port: production hands in the system's, tests a seeded one."""

import random
from typing import Protocol


class Rng(Protocol):
    def random(self) -> float:
        """Uniform in [0, 1)."""
        ...


class SystemRng:
    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def random(self) -> float:
        return self._random.random()
