"""The playground as a program: starts the cluster, waits for a signal, and stops all of it."""

import asyncio
import signal
from collections.abc import Callable

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import OnReady, Playground
from metasrv.playground.restarts import restarts


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
                group.create_task(restarts(playground, id))
            await asyncio.Event().wait()  # with all children dead it still waits for a signal
