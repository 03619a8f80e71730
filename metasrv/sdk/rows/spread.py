"""Chooses the server to ask first, of several equal ones: the one with the fewest open requests of
ours. Pure. Pure.

One that is slow has more of our requests open than others, so it is given fewer; one that did not
answer rests, for longer each time, and is asked last meanwhile.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from metasrv_base.concurrency.backoff import Backoff

REST = Backoff(first_ms=5_000, max_ms=60_000)


class Spread:
    """Times are in seconds of one clock."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = tuple(addresses)
        self._turns = 0
        self._last_turn: dict[str, int] = {}
        """The turn in which each was last first. Of those with equally few requests, the one with
        the oldest turn is first."""
        self._open = Counter[str]()
        self._failed = Counter[str]()
        """Failures in a row."""
        self._rests_until: dict[str, float] = {}

    def order(self, now: float) -> tuple[str, ...]:
        """All, the first to be asked first. Each call is one turn."""
        addresses = sorted(self.addresses, key=lambda address: self._rank(address, now))
        self._turns += 1
        self._last_turn.update((address, self._turns) for address in addresses[:1])
        return tuple(addresses)

    @contextmanager
    def asking(self, address: str) -> Iterator[None]:
        self._open[address] += 1
        try:
            yield
        finally:
            self._open[address] -= 1

    def answered(self, address: str) -> None:
        self._failed.pop(address, None)
        self._rests_until.pop(address, None)

    def failed(self, address: str, now: float) -> None:
        """Notes that a server was silent, or could not serve."""
        self._failed[address] += 1
        rest_ms = REST.delay_ms(self._failed[address], 0.0)
        self._rests_until[address] = now + rest_ms / 1000

    def replace(self, addresses: Sequence[str]) -> None:
        """Replaces the servers; the state of those that stay is kept."""
        self.addresses = tuple(addresses)
        gone = self._failed.keys() - set(addresses)
        for address in gone:
            self.answered(address)

    def _rank(self, address: str, now: float) -> tuple[bool, int, int]:
        rests = self._rests_until.get(address, now) > now
        return rests, self._open[address], self._last_turn.get(address, 0)
