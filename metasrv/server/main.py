"""The metasrv server as a process: the one place where its parts are made and put together."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial

import structlog
import uvloop

from keys.catalog.follower import Follower
from keys.catalog.log.handlers import RunningHandler
from keys.catalog.log.revision_pins import RevisionPins
from keys.store.measured import MeasuredKv
from metasrv.adapters.measured_jobs import MeasuredJobs
from metasrv.adapters.spark_jobs import SparkJobs, SparkSettings, driver_command
from metasrv.api.http.metrics import ServerMetrics
from metasrv.host.tool_search import toolchain
from metasrv.leadership.election import Election, ElectionTiming, ServerIdentity, win
from metasrv.leadership.leadership import ServerDeps, lead
from metasrv.program.config import ServerConfig
from metasrv.program.version import VERSION
from metasrv.server import collector
from metasrv.server.app import build_ahead, build_app
from metasrv.service.state.state import ServerState
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.errors import Corrupt, MetaError, Unavailable, Unknown
from metasrv_base.ids import RandomIds
from metasrv_base.log import log_to_stderr
from metasrv_base.ready import announce
from metasrv_base.rng import SystemRng
from metasrv_base.wire.http.addresses import own_url
from serving.left_out import leave_out_pandas, leave_out_sniffio
from serving.open_files import raise_open_files
from serving.server import Server
from serving.tokens import guarded, secrets_of

EXIT_CONFIG = 78  # EX_CONFIG of sysexits.h: an operator must change something first
DRAIN_S_MAX = 1  # for answers under way at SIGTERM; streams and long polls end at once
HANDOVER_S_MAX = 0.4  # for the seat to be given up, so that the next leader need not wait for it
AGAIN_MS = 500  # before standing again after a session or a term has ended

log = structlog.get_logger()


def main(argv: Sequence[str] | None = None) -> int:
    if not __debug__:
        print("asserts are part of this program: do not run it with -O", file=sys.stderr)
        return EXIT_CONFIG
    try:
        config = ServerConfig.start(sys.argv[1:] if argv is None else argv)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_CONFIG
    log_to_stderr(server=config.server_id)
    leave_out_pandas()
    leave_out_sniffio()
    raise_open_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(config))
    gc.freeze()  # what is left is not looked through once more, which took longer than all else
    return 0


async def run(config: ServerConfig) -> None:
    """Runs the server until SIGTERM or SIGINT; then it resigns as leader and the process ends."""
    listening = socket.create_server((config.host, config.port))
    url = own_url(config.advertise, config.host, listening.getsockname()[1])
    tokens, token = secrets_of(config)
    clock, metrics = SystemClock(), ServerMetrics()
    store = await config.store.connect(config.key_prefix.encode())
    kv = MeasuredKv(store, clock, metrics.store_answered)
    ids, deadline_ms = RandomIds(clock), config.store_deadline_ms
    pins = RevisionPins(kv, clock, ids, config.server_id, deadline_ms)
    follower = Follower(kv, clock, deadline_ms=deadline_ms, pins=pins)
    follower.log.on_slow(partial(tell_slow, metrics))
    jobs = spark_jobs(config, clock)
    metrics.watch_spark(jobs)
    measured = MeasuredJobs(jobs, clock, metrics.job_ended)
    world = ServerDeps(config, kv, clock, ids, SystemRng(), follower, measured, token)
    state = ServerState.of(world, url, pins)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    app = build_app(state, metrics=metrics)
    await asyncio.to_thread(build_ahead, app)
    server = Server(guarded(app, tokens, metrics.refused), config.host, drain_s=DRAIN_S_MAX)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[listening]))
        work = [
            tasks.create_task(follower.log.follow()),
            tasks.create_task(settle(follower)),
            tasks.create_task(follower.log.listen()),
            tasks.create_task(follower.keep_packed()),
            tasks.create_task(state.old.run()),
            tasks.create_task(state.addresses.follow()),
            tasks.create_task(jobs.run()),
            tasks.create_task(
                candidate(world, state, ServerIdentity(config.server_id, url, VERSION))
            ),
        ]
        await server.is_up.wait()
        facts: dict[str, str | int] = {
            "server_id": config.server_id,
            "url": url,
            "pid": os.getpid(),
        }
        announce(facts, config.ready_file)
        collector.begin()
        await stop.wait()
        state.stop()
        server.should_exit = True
        await asyncio.wait([serving, tasks.create_task(jobs.close())])
        for _ in range(2):  # an etcd that is silent is not waited for: the lease ends by itself
            for task in work:
                task.cancel()
            await asyncio.wait(work, timeout=HANDOVER_S_MAX)
    await kv.close()
    log.info("server_stopped")


def tell_slow(metrics: ServerMetrics, running: RunningHandler) -> None:
    """Names a handler of the catalog log that holds its version back."""
    metrics.handlers.slow(running.name)
    log.warning("update_handler_slow", handler=running.name, version=running.version)


async def settle(follower: Follower) -> None:
    """Excludes the loaded catalog from garbage collection. A collection over 100,000 tables takes a
    second, in which no heartbeat is answered."""
    await follower.log.loaded.wait()
    gc.freeze()


def spark_jobs(config: ServerConfig, clock: Clock) -> SparkJobs:
    """Spark in a process of its own, with the Java that the set-up chose, or that is found now."""
    settings = SparkSettings(
        work_dir=config.data_dir / "spark",
        master=config.spark_master,
        driver_host=config.spark_driver_host,
        driver_memory=config.spark_driver_memory,
        is_warm=config.spark_warm,
        import_folders=tuple(map(str, config.import_folders)),
    )
    chosen = toolchain().environment(os.environ["PATH"])
    return SparkJobs(driver_command(settings), {**os.environ, **chosen}, clock, settings)


async def candidate(world: ServerDeps, state: ServerState, me: ServerIdentity) -> None:
    """Stands for election for ever: session after session, term after term."""
    config = world.config
    timing = ElectionTiming(config.leader_ttl_ms, config.keep_alive_ms, config.store_deadline_ms)
    election = Election(world.kv, world.clock, me, timing)
    state.is_valid = election.is_valid
    while True:
        try:
            await _one_session(world, state, election)
        except* (Unknown, Unavailable) as group:
            log.warning("store_silent", error=str(group.exceptions[0]))
        except* Corrupt as group:
            log.exception("metadata_corrupt", error=str(group.exceptions[0]))
        except* MetaError as group:
            log.warning("leadership_ended", error=str(group.exceptions[0]))
        await world.clock.sleep_ms(AGAIN_MS)


async def _one_session(world: ServerDeps, state: ServerState, election: Election) -> None:
    """One lease: waits for the seat, leads, and gives everything up when either ends."""
    session = await election.open_session()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(election.keep_alive(session))
            await world.follower.log.loaded.wait()  # who leads cannot begin without it
            fence = await win(election, session, world.clock, state.heard)
            log.info("leader_elected", term=fence.mod_revision)
            await lead(world, fence, state.begin)
    finally:
        state.begin(None)
        await election.resign(session)


if __name__ == "__main__":
    sys.exit(main())
