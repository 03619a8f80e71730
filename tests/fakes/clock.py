"""A clock that moves only when it is told to."""

from dataclasses import dataclass


@dataclass
class FakeClock:
    """Implements metasrv_base.clock.Clock. `sleep_ms` moves it, so nothing ever waits."""

    now_ms: int = 1_000_000
    epoch_ms: int = 1_700_000_000_000

    def wall_ms(self) -> int:
        return self.epoch_ms + self.now_ms

    def mono_ms(self) -> int:
        return self.now_ms

    async def sleep_ms(self, ms: int) -> None:
        self.now_ms += ms

    def advance(self, ms: int) -> None:
        self.now_ms += ms
