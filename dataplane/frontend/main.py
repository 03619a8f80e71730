"""The frontend as a process: the one place where its parts are made and put together."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
import uvloop

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.catalog.feed import Feed, Servers
from dataplane.frontend.catalog.near_copies import NearCopies
from dataplane.frontend.config import FrontendConfig
from dataplane.frontend.http.app import build_app
from dataplane.frontend.lease.holder import HolderLoop, HolderPorts
from dataplane.frontend.lease.latency import Latency
from dataplane.frontend.lease.transactions import Transactions
from dataplane.frontend.metasrv import HttpHolderLeader
from dataplane.frontend.metrics import FrontendMetrics
from dataplane.frontend.service import FrontendService
from dataplane.frontend.statements.regions import RegionClient
from dataplane.frontend.statements.statements import Statements
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Conflict
from metasrv_base.log import log_to_stderr
from metasrv_base.ready import announce
from metasrv_base.rng import SystemRng
from metasrv_base.rows.nodes import NodePools
from metasrv_base.token import OwnToken
from metasrv_base.wire.http.addresses import own_url
from metasrv_base.wire.http.client import HttpClient
from serving.left_out import leave_out_pandas
from serving.open_files import raise_open_files
from serving.server import Server
from serving.tokens import guarded, secrets_of

EXIT_CONFIG = 78  # EX_CONFIG of sysexits.h: an operator must change something first
EXIT_LEASE = 75  # EX_TEMPFAIL: started again, it may hold a lease again
THREADS_MAX = 16  # they encode and decode rows; two cores do no more of that at a time
DRAIN_S_MAX = 10  # for statements under way at SIGTERM: the greatest age of a transaction
LAST_WORDS_S = 1  # for answers under way when the lease has ended: all of them say 503
OLD_SCANS_MS = 500

log = structlog.get_logger()


def main(argv: Sequence[str] | None = None) -> int:
    if not __debug__:
        print("asserts are part of this program: do not run it with -O", file=sys.stderr)
        return EXIT_CONFIG
    try:
        config = FrontendConfig.start(sys.argv[1:] if argv is None else argv)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_CONFIG
    log_to_stderr(frontend_id=config.frontend_id)
    leave_out_pandas()
    raise_open_files()
    code = EXIT_CONFIG
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(run(config))
    except* Conflict as refused:
        reasons = [str(error) for error in refused.exceptions]
        log.exception("frontend_refused", errors=reasons, runbook="docs/operate/frontend.md")
    gc.freeze()  # what is left is not looked through once more
    return code


async def run(config: FrontendConfig) -> int:
    """Runs the frontend until SIGTERM or SIGINT, or until its lease has ended. Returns the exit
    code. Raises Conflict (in a group) when this process must never serve."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS_MAX))
    listening = socket.create_server((config.host, config.port))
    address = own_url(config.advertise, config.host, listening.getsockname()[1])
    tokens, token = secrets_of(config)
    client = HttpClient(config.metasrv_urls, token=token)
    async with client, asyncio.TaskGroup() as group:
        frontend = _Frontend(config, address, client, token)
        app = guarded(build_app(frontend.service), tokens, frontend.service.metrics.refused)
        server = Server(app, config.host, drain_s=DRAIN_S_MAX)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        serving = group.create_task(server.serve(sockets=[listening]))
        await server.is_up.wait()
        announce(
            {"frontend_id": config.frontend_id, "url": address, "pid": os.getpid()},
            config.ready_file,
        )
        gc.freeze()  # modules and models stay: they are not looked through again and again
        background = [group.create_task(work) for work in frontend.background()]
        over = group.create_task(frontend.holder.until_over())
        stopping = group.create_task(stop.wait())
        await asyncio.wait([over, stopping], return_when=asyncio.FIRST_COMPLETED)
        is_over = over.done()
        if is_over:
            log.error("schema_lease_lost", runbook="docs/operate/frontend.md")
            server.config.timeout_graceful_shutdown = LAST_WORDS_S
        server.should_exit = True
        await serving
        for task in (*background, over, stopping):
            task.cancel()
        await frontend.holder.sign_off()
        await frontend.nodes.close()
    log.info("frontend_stopped")
    return EXIT_LEASE if is_over else 0


class _Frontend:
    """The parts of one frontend, wired."""

    def __init__(
        self, config: FrontendConfig, address: str, client: HttpClient, token: OwnToken
    ) -> None:
        clock, rng = SystemClock(), SystemRng()
        # What is read stays: the collector passes over it, or it would look through all of it,
        # again and again as it grows, and stand still for seconds.
        catalog = LiveCatalog(lambda: self.holder.tell(), on_part=gc.freeze)
        transactions = Transactions(lambda table, version: self.holder.freed(table, version))
        feed = Feed(catalog, Servers(config.metasrv_urls, token), clock, rng)
        latency = Latency()
        world = HolderPorts(HttpHolderLeader(client), clock, feed.reload, feed.learn)
        self.holder = HolderLoop(config.frontend_id, address, catalog, transactions, latency, world)
        self.nodes = NodePools(token=token, named_by=config.metasrv_urls)
        metrics = FrontendMetrics()
        regions = RegionClient(
            *(catalog, self.nodes, rng, self.holder.check_lease, config.frontend_id),
            near=NearCopies(config.zone, metrics.answered_by),
        )
        statements = Statements(self.holder, catalog, transactions, clock, latency)
        self.service = FrontendService.of(statements, regions, metrics, config.answer_bytes)
        self._feed = feed

    def background(self) -> Iterator[Any]:
        yield self._feed.run()
        yield self.holder.run()
        yield self._end_old_scans()

    async def _end_old_scans(self) -> None:
        while True:
            await self.service.statements.clock.sleep_ms(OLD_SCANS_MS)
            self.service.scans.end_old()


if __name__ == "__main__":
    sys.exit(main())
