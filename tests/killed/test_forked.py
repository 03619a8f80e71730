"""Servers end with their test, however that ends."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.killed.fault import Orders
from tests.killed.forked import Forked, Zygote, zygote
from tests.killed.loop import FastLoop
from tests.metasrv.playground.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.process]


async def stand_still(
    servers: Zygote, folder: Path, begun: Callable[[], None], seen: list[Forked]
) -> None:
    """Until this is cancelled; then it ends its server."""
    server = servers.expect("meta-1")
    seen.append(server)
    orders = Orders(
        number=server.number,
        name=server.name,
        scenario="create_schema",
        endpoint="127.0.0.1:1",
        prefix="/life-1/",
        folder=str(folder),
        fault=None,
        patience=1,
    )
    try:
        await servers.fork(server, orders)
        server.signal(signal.SIGSTOP)
        begun()
        await asyncio.Event().wait()
    finally:
        await server.end()


def is_alive(server: Forked) -> bool:
    try:
        os.kill(server.pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_given_a_server_that_stands_still_when_its_loop_is_closed_then_it_has_ended(
    tmp_path: Path,
) -> None:
    """So does a test that is over its time leave a loop: nothing in it is awaited any more."""
    seen: list[Forked] = []

    async def main() -> None:
        async with zygote() as servers:
            await stand_still(servers, tmp_path, asyncio.get_running_loop().stop, seen)

    with asyncio.Runner(loop_factory=FastLoop) as runner, pytest.raises(RuntimeError):
        runner.run(main())

    until(lambda: not is_alive(seen[0]), 120)


def test_given_a_zygote_that_ends_when_a_server_is_waited_for_then_that_is_told(
    tmp_path: Path,
) -> None:
    seen: list[Forked] = []

    async def main() -> None:
        async with zygote() as servers:
            await stand_still(servers, tmp_path, servers.kill, seen)

    with asyncio.Runner(loop_factory=FastLoop) as runner, pytest.raises(ExceptionGroup) as raised:
        runner.run(main())

    assert raised.group_contains(ChildProcessError)
    until(lambda: not is_alive(seen[0]), 120)
