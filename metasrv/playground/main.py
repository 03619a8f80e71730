"""The playground as a program: starts the cluster, waits for a signal, and stops all of it."""

import asyncio
import os
import signal
from collections.abc import Callable

import structlog

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import OnReady, Playground
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Unavailable

RESTART_BACKOFF = Backoff(first_ms=500, max_ms=10_000)
HEALTHY_MS = 30_000
"""A program that ran this long before it died is started again at once, as for the first time."""

log = structlog.get_logger()


async def run(
    settings: PlaygroundOptions, on_ready: OnReady, on_up: Callable[[Playground], None]
) -> None:
    """Runs a cluster until SIGTERM or SIGINT, in its start too. `on_up`: called once when
    everything serves.

    Raises Refused, Conflict or Unavailable if the cluster does not come up.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    work = loop.create_task(_serve(settings, on_ready, on_up))
    stopping = loop.create_task(stop.wait())
    await asyncio.wait([work, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not work.done():
        work.cancel()
        await asyncio.wait([work])
    if not work.cancelled():
        work.result()


async def _serve(
    settings: PlaygroundOptions, on_ready: OnReady, on_up: Callable[[Playground], None]
) -> None:
    async with Playground(settings, on_ready=on_ready) as playground:
        on_up(playground)
        async with asyncio.TaskGroup() as group:
            for id in playground.children:
                group.create_task(_watch(playground, id))
            await asyncio.Event().wait()  # with all children dead it still waits for a signal


async def _watch(playground: Playground, id: str) -> None:
    """Says that a program has ended; starts it again where that was asked for, be it by itself."""
    loop = asyncio.get_running_loop()
    attempt = 0
    while True:
        begun = loop.time()
        code = await playground.children[id].ended()
        log.warning("program_ended", program=id, code=code)
        if not (playground.settings.supervise or asks_to_start_again(code)):
            return
        attempt = 1 if (loop.time() - begun) * 1000 > HEALTHY_MS else attempt + 1
        await asyncio.sleep(RESTART_BACKOFF.delay_ms(attempt, 0.0) / 1000)
        try:
            await playground.restart(id)
        except Unavailable as error:
            log.warning("program_failed", program=id, told=error.facts.get("told"))
        else:
            log.info("program_restarted", program=id, pid=playground.pid(id))


def asks_to_start_again(code: int) -> bool:
    """Whether a program ended so that somebody starts it again, as a frontend without a lease does;
    one that was killed does not."""
    return code == os.EX_TEMPFAIL
