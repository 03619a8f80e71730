"""A bounded schedule of delays between retries. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential from `first_ms` by two, never above `max_ms`, jittered downwards by a quarter."""

    first_ms: int = 100
    max_ms: int = 10_000

    def delay_ms(self, attempt: int, noise: float) -> int:
        """Returns the pause after attempt *attempt*, counted from 1; *noise* in [0, 1) spreads
        clients."""
        assert attempt >= 1
        assert 0 <= noise < 1
        full = min(self.max_ms, self.first_ms << min(attempt - 1, 32))
        return int(full * (1 - noise / 4))
