"""Ids and chance that a seed decides."""

from itertools import count
from random import Random

from metasrv_base.clock import Clock
from metasrv_base.ids import ProcedureId, uuid7


class SeededIds:
    """Implements metasrv_base.ids.Ids: each id is new, and a later one sorts after an earlier
    one.
    """

    def __init__(self, clock: Clock, seed: int = 0) -> None:
        self._clock = clock
        self._seed = seed
        self._numbers = count(1)

    def procedure_id(self) -> ProcedureId:
        noise = next(self._numbers).to_bytes(5, "big") + self._seed.to_bytes(5, "big")
        return ProcedureId(uuid7(self._clock.wall_ms(), noise))


class SeededRng:
    """Implements metasrv_base.rng.Rng."""

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)

    def random(self) -> float:
        return self._random.random()
