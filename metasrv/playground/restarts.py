"""Programs of a playground that end, and are started again."""

import asyncio
import os

import structlog

from metasrv.playground.playground import Playground
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Unavailable

RESTART_BACKOFF = Backoff(first_ms=500, max_ms=10_000)
HEALTHY_MS = 30_000
"""A program that ran this long before it died is started again at once, as for the first time."""

log = structlog.get_logger()


async def restarts(playground: Playground, id: str) -> None:
    """Says that a program has ended, and starts it again where that was asked for, be it by the
    program itself. Returns when it has ended and stays so."""
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
