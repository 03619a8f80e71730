"""The datanode as a process: the one place where its parts are made and put together."""

import asyncio
import gc
import os
import signal
import socket
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
import uvloop

from dataplane.datanode.allocator import share_arenas
from dataplane.datanode.config import DatanodeConfig
from dataplane.datanode.copies.copy_sessions import CopySessions
from dataplane.datanode.copies.copy_upkeep import CopyUpkeep
from dataplane.datanode.copies.file_fetches import FETCHES_MAX, FileFetches
from dataplane.datanode.copies.followed import CopyAppends
from dataplane.datanode.copies.peers import HttpPeers
from dataplane.datanode.copies.set_changes import SetChanges
from dataplane.datanode.copies.transfer_rate import TransferRate
from dataplane.datanode.http.app import build_app
from dataplane.datanode.membership.adoption import NodeAdoption
from dataplane.datanode.membership.followed_settings import FollowedSettings
from dataplane.datanode.membership.heartbeat import HeartbeatLoop, HeartbeatPorts
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.membership.metasrv import HttpNodeLeader, NodeCopySets
from dataplane.datanode.membership.resources import LocalMachine
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.orders.journal import NodeJournal, open_journal
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.ports import Spawn
from dataplane.datanode.promises.common_positions import NodeCommonPositions
from dataplane.datanode.promises.promise_asker import PromiseAsker
from dataplane.datanode.promises.promise_desk import PromiseDesk
from dataplane.datanode.promises.shared_regions import PromisePorts
from dataplane.datanode.promises.silence_reports import SilenceReports
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.rows import RowService
from dataplane.datanode.regions.slot import followed_here
from dataplane.datanode.regions.store import DiskStore
from dataplane.datanode.root_lock import RootLock
from dataplane.datanode.service import DatanodeService
from dataplane.datanode.upkeep.copy_merging import CopyMerging
from dataplane.datanode.upkeep.merging import Merging
from dataplane.datanode.upkeep.upkeep import Upkeep
from dataplane.region.copies.leader_silence import LeaderSilence
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engines.registry import ENGINES
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.memory.statements import StatementWindow
from dataplane.region.place import RegionLimits
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Conflict, Corrupt
from metasrv_base.log import log_to_stderr
from metasrv_base.ready import announce
from metasrv_base.wire.http.addresses import own_url
from metasrv_base.wire.http.client import HttpClient
from serving.left_out import leave_out_pandas
from serving.open_files import raise_open_files
from serving.server import Server
from serving.tokens import guarded, secrets_of

EXIT_CONFIG = 78  # EX_CONFIG of sysexits.h: an operator must change something first
THREADS_MAX = 32  # writes and scans wait for the disk; more would only wait together
DRAIN_S_MAX = 3  # for answers under way at SIGTERM; scans that last longer are cut

log = structlog.get_logger()


def main(argv: Sequence[str] | None = None) -> int:
    if not __debug__:
        print("asserts are part of this program: do not run it with -O", file=sys.stderr)
        return EXIT_CONFIG
    share_arenas()
    try:
        config = DatanodeConfig.start(sys.argv[1:] if argv is None else argv)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return EXIT_CONFIG
    log_to_stderr(node_id=config.node_id)
    leave_out_pandas()
    raise_open_files()
    try:
        with RootLock(config.root), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(config))
    except (Conflict, Corrupt) as error:
        return _refused([error])
    except ExceptionGroup as group:
        refusals, rest = group.split((Conflict, Corrupt))
        if rest is not None or refusals is None:
            raise
        return _refused(refusals.exceptions)
    gc.freeze()  # what is left is not looked through once more, which took longer than all else
    return 0


def _refused(errors: Iterable[Exception]) -> int:
    for error in errors:
        log.error("datanode_refused", error=str(error), runbook="docs/problems/README.md")
    return EXIT_CONFIG


async def run(config: DatanodeConfig) -> None:
    """Runs the node until SIGTERM or SIGINT. Raises Conflict (in a group) when this process must
    never serve."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS_MAX))
    journal = await asyncio.to_thread(open_journal, LocalDisk(), config.root, config.node_id)
    if journal.state.node_id != config.node_id:
        raise Conflict("wrong-cluster", expected=journal.state.node_id, found=config.node_id)
    listening = socket.create_server((config.host, config.port))
    address = own_url(config.advertise, config.host, listening.getsockname()[1])
    tokens, token = secrets_of(config)
    incarnation, engines = str(uuid.uuid4()), tuple(sorted(ENGINES))
    identity = NodeIdentity(config.node_id, incarnation, address, config.zone, config.root, engines)
    client = HttpClient(config.metasrv_urls, token=token)
    to = Connections(client, HttpPeers(token, config.metasrv_urls))
    async with client, aclosing(to.peers), asyncio.TaskGroup() as group:
        node = _Node(config, journal, identity, to, group.create_task)
        app = guarded(build_app(node.service), tokens, node.service.metrics.refused)
        server = Server(app, config.host, drain_s=DRAIN_S_MAX)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        serving = group.create_task(server.serve(sockets=[listening]))
        await server.is_up.wait()
        announce(_facts(identity), config.ready_file)
        gc.freeze()  # modules and models stay: they are not looked through again and again
        background = [group.create_task(work) for work in node.background()]
        await stop.wait()
        server.should_exit = True
        await serving
        await node.service.regions.close_all()
        for task in background:
            task.cancel()
    journal.close()
    log.info("datanode_stopped", node_id=config.node_id)


@dataclass(frozen=True, slots=True)
class Connections:
    """The clients of one node."""

    metasrv: HttpClient
    peers: HttpPeers
    """Other nodes with copies."""


class _Node:
    """The parts of one node, wired."""

    def __init__(
        self,
        config: DatanodeConfig,
        journal: NodeJournal,
        identity: NodeIdentity,
        to: Connections,
        spawn: Spawn,
    ) -> None:
        clock = SystemClock()
        leases = RegionLeases(identity.incarnation)
        window = StatementWindow(config.statement_window_ms, config.clock_drift_ms)
        limits = RegionLimits(config.memtable_bytes_max, config.flush_age_ms, window)
        folders, budget = config.shared_folders, MemoryBudget(config.rows_bytes)
        cache = BlockCache(config.block_cache_bytes, budget.share().set)
        store = DiskStore(LocalDisk(), clock, config.root, limits, cache, folders, budget)
        regions = NodeRegionSet(store, leases, clock, spawn, to.peers)
        desk = OrderExecutor(journal, regions)
        membership = Membership(identity, journal.state.cluster_id)
        leader = HttpNodeLeader(to.metasrv)
        sets = NodeCopySets(membership, leader)
        self._set_changes = SetChanges(regions.led, sets, clock)
        world = HeartbeatPorts(leader, LocalMachine(config.root), clock, leases)
        self._heart = HeartbeatLoop(membership, desk, journal, regions, world)
        self._upkeep = Upkeep(regions, clock, budget)
        self._copy_upkeep = CopyUpkeep(regions.copies, clock, budget, regions.retire_copy)
        metrics = NodeMetrics()
        self._copy_merging = CopyMerging(regions.copies, clock, metrics)
        self._merging = Merging(regions, clock, metrics)
        positions, silence = NodeCommonPositions(regions), LeaderSilence()
        promises = PromisePorts(membership, regions, clock, silence, metrics.promised, positions)
        self._asker = PromiseAsker(promises, to.peers)
        self._silences = SilenceReports(promises, partial(followed_here, regions), leader)
        rows = RowService(regions, config.read_bytes, config.body_bytes)
        adoption = NodeAdoption(membership, self._heart, desk, journal, regions, LocalDisk())
        rate = TransferRate(clock, config.fetch_bytes_per_s)
        self._fetches = FileFetches(regions.copies, to.peers, membership, clock, rate)
        copies = CopyAppends(
            regions.followed,
            lambda leader: silence.note_request(leader, clock.mono_ms()),
            self._fetches.wake,
        )
        sessions = self._sessions = CopySessions(regions.led, membership, clock)
        appliers = {"fetch_bytes_per_s": rate.adjust}
        self._settings = FollowedSettings(membership, leader, clock, appliers)
        self.service = DatanodeService(
            *(membership, desk, regions, rows, copies, sessions, leases, clock, metrics),
            *(self._heart.execute, adoption, PromiseDesk(promises)),
        )

    def background(self) -> Iterator[Any]:
        yield self._heart.run()
        yield self._heart.run_instructions()
        yield self._settings.run()
        yield self._upkeep.run()
        yield self._copy_upkeep.run()
        yield self._set_changes.run()
        yield self._asker.run()
        yield self._silences.run()
        yield self._merging.run()
        yield self._copy_merging.run()
        yield self._sessions.run()
        for _ in range(FETCHES_MAX):
            yield self._fetches.run()
        yield self._fetches.run(named_only=True)


def _facts(identity: NodeIdentity) -> dict[str, str | int]:
    return {
        "node_id": identity.node_id,
        "url": identity.address,
        "pid": os.getpid(),
        "root": identity.root,
        "zone": identity.zone,
        "incarnation": identity.incarnation,
    }


if __name__ == "__main__":
    sys.exit(main())
