"""A rate at which fetches end: sessions at the leader outlast the pause between two pieces."""

import pytest

from dataplane.datanode.config import FETCH_BYTES_PER_S_MIN
from dataplane.datanode.copies.copy_sessions import IDLE_MS_MAX
from dataplane.datanode.copies.file_fetches import FETCHES_MAX
from dataplane.datanode.copies.transfer_rate import TransferRate
from metasrv_base.wire.node.copy_sessions import PIECE_BYTES_MAX
from tests.fakes.clock import FakeClock

AT_ONCE = FETCHES_MAX + 1
"""One more fetches files that a record names."""


class Waited(FakeClock):
    """A clock that moves when somebody sleeps."""

    async def sleep_ms(self, ms: int) -> None:
        self.advance(ms)


@pytest.mark.parametrize("bytes_per_s", [1, 1_000, FETCH_BYTES_PER_S_MIN])
async def test_given_the_lowest_rate_when_all_fetch_then_no_session_is_idle_for_too_long(
    bytes_per_s: int,
) -> None:
    clock = Waited()
    rate = TransferRate(clock, 0)
    rate.adjust(bytes_per_s)
    began_ms = clock.mono_ms()

    for _ in range(AT_ONCE + 1):  # each has a piece, and then the first waits for its next
        await rate.spend(PIECE_BYTES_MAX)

    assert 0 < clock.mono_ms() - began_ms < IDLE_MS_MAX


async def test_given_no_limit_when_adjusted_then_nobody_waits() -> None:
    clock = Waited()
    rate = TransferRate(clock, 1_000)
    rate.adjust(0)
    began_ms = clock.mono_ms()

    for _ in range(3):
        await rate.spend(PIECE_BYTES_MAX)

    assert clock.mono_ms() == began_ms
