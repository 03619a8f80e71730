"""Response times of statements since the last acknowledgement; a reorg is throttled by them.
Pure."""

SAMPLES_MAX = 10_000
"""The most response times for one acknowledgement; later ones are dropped."""


class Latency:
    def __init__(self) -> None:
        self._taken_ms: list[float] = []

    def took(self, ms: float) -> None:
        if len(self._taken_ms) < SAMPLES_MAX:
            self._taken_ms.append(ms)

    def taken_p99_ms(self) -> float | None:
        """The time within which 99 of 100 were answered; None: there were none. Begins anew."""
        times_ms, self._taken_ms = sorted(self._taken_ms), []
        return times_ms[(len(times_ms) - 1) * 99 // 100] if times_ms else None
