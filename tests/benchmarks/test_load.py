"""The clock of a closed loop starts when every client is connected and warm."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchmarks.load import Ask, closed

CLIENTS = 4


class Server:
    """Notes what its clients do."""

    def __init__(self) -> None:
        self.steps: list[object] = []

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Ask]:
        self.steps.append("connect")
        yield self._ask
        self.steps.append("close")

    async def _ask(self, number: int) -> None:
        await asyncio.sleep(0)
        self.steps.append(number)


async def test_given_several_clients_then_all_are_connected_before_the_first_request() -> None:
    server = Server()

    load = await closed(server.connected, range(10), clients=CLIENTS)

    between = server.steps[CLIENTS:-CLIENTS]
    assert server.steps == ["connect"] * CLIENTS + between + ["close"] * CLIENTS
    assert sorted(map(str, between)) == [str(number) for number in range(10)]
    assert len(load.latencies_ms) == 10


@pytest.mark.parametrize("warm", [0, 3, 8])
async def test_given_warm_requests_then_each_is_done_first_and_is_no_part_of_the_load(
    warm: int,
) -> None:
    server = Server()

    load = await closed(server.connected, range(20), clients=CLIENTS, warm=warm)

    numbers = [step for step in server.steps if isinstance(step, int)]
    assert set(numbers[:warm]) == set(range(warm))
    assert sorted(numbers) == list(range(20))
    assert len(load.latencies_ms) == 20 - warm


async def test_given_a_request_that_fails_then_every_connection_is_closed() -> None:
    closes = list[str]()

    @asynccontextmanager
    async def failing() -> AsyncIterator[Ask]:
        async def ask(number: int) -> None:
            raise ConnectionResetError(number)

        try:
            yield ask
        finally:
            closes.append("close")

    with pytest.raises(ExceptionGroup):
        await closed(failing, range(20), clients=CLIENTS)

    assert len(closes) == CLIENTS
