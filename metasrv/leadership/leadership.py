"""Leadership as a scope: everything only a leader does runs in one task group that ends with it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

import httpx
import structlog

from keys.catalog.follower import Follower
from keys.catalog.large.unfinished import keys_left
from keys.commit.bootstrap import bootstrap_request
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.sequence import Sequences
from keys.commit.settled import SettledReads
from keys.model.cluster import ClusterKey, ClusterRecord
from keys.store.kv import Compare, Get, Kv, Request
from keys.store.reads import MergedReads
from keys.value import decode
from metasrv.adapters.http_adoption import HttpAdoption
from metasrv.adapters.http_nodes import HttpNodes
from metasrv.adapters.http_silence import HttpSilenceProbe
from metasrv.holders.holder_registry import HolderRegistry
from metasrv.holders.sync import HolderSync
from metasrv.holders.sync import SchemaLeaseTiming as SchemaTiming
from metasrv.leadership.copies.copy_keeper import CopyKeeper
from metasrv.leadership.defaults import make_defaults
from metasrv.leadership.housekeeping import housekeeping
from metasrv.leadership.log.compaction import LogCompaction
from metasrv.leadership.orphans.orphan_keeper import OrphanKeeper
from metasrv.leadership.retirement import retirement
from metasrv.leadership.supervisor import Supervisor
from metasrv.leadership.tally import HistoryTally
from metasrv.leadership.term import Term
from metasrv.leadership.tuning import Tuned
from metasrv.leadership.unreadable import Unreadable
from metasrv.nodes.detector import PhiConfig
from metasrv.nodes.lease_table import LeaseTable
from metasrv.nodes.node_liveness import HeartbeatTiming, NodeLiveness
from metasrv.program.config import ServerConfig
from metasrv.settings.settings import SettingsStore
from metasrv_base.clock import Clock
from metasrv_base.errors import NotLeader, Unknown
from metasrv_base.ids import Ids
from metasrv_base.rng import Rng
from metasrv_base.token import OwnToken
from procedures.context import Ports
from procedures.kinds.registry import KINDS
from procedures.locking.locks import route_key, table_key
from procedures.machine import AdmissionLane
from procedures.ports import Jobs
from procedures.scheduling.admission import Limits
from procedures.scheduling.manager import Manager

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServerDeps:
    """The parts of a server that it has whether it leads or not."""

    config: ServerConfig
    kv: Kv
    clock: Clock
    ids: Ids
    rng: Rng
    follower: Follower
    jobs: Jobs
    token: OwnToken | None = None
    """The token that it shows to nodes."""
    transport: httpx.AsyncBaseTransport | None = None
    """The transport to nodes. None: the network."""


async def ensure_cluster(world: ServerDeps, fence: Compare) -> ClusterRecord:
    """The cluster under this prefix; the first leader of an empty one makes it."""
    key = ClusterKey()
    deadline_ms = world.config.store_deadline_ms
    while True:
        request = Request(compares=(fence,), reads=(Get(bytes(key)),))
        answer = await world.kv.txn(request, deadline_ms=deadline_ms)
        if not answer.succeeded:
            raise NotLeader(term=fence.mod_revision)
        if answer.ranges[0]:
            return decode(ClusterRecord, answer.ranges[0][0].value, key=str(key))
        first = bootstrap_request(fence, world.ids.procedure_id(), world.clock.wall_ms())
        try:
            done = await world.kv.txn(first, deadline_ms=deadline_ms)
        except Unknown:
            continue  # looked at again, under the fence
        if not done.succeeded:
            log.error("prefix_not_empty", prefix=world.config.key_prefix)
            await world.clock.sleep_ms(deadline_ms)


@asynccontextmanager
async def open_term(world: ServerDeps, fence: Compare) -> AsyncIterator[Term]:
    """A term with all its parts, none of them running yet."""
    config = world.config
    cluster = await ensure_cluster(world, fence)
    line = await read_log_head(world.kv, fence, deadline_ms=config.store_deadline_ms)
    committer = Committer(world.kv, world.clock, line, deadline_ms=config.store_deadline_ms)
    world.follower.log.lead(committer)
    await world.follower.wait_for(line.version, deadline_ms=config.leader_ttl_ms)
    left = await keys_left(world.kv, fence, world.follower, deadline_ms=config.store_deadline_ms)
    if left is not None:
        log.info("large_version_resumed", version=left.value.version, keys=len(left.left))
        committer.finish(left)
    unreadable = Unreadable()
    settings = SettingsStore(
        world.kv, committer, world.clock, config.store_deadline_ms, unreadable=unreadable
    )
    await settings.load()
    busy = _Busy(asyncio.Event())
    book = _book(world, cluster, committer, settings, busy)
    await book.load(unreadable)
    holders = _holders(world, cluster.cluster_id, committer)
    await holders.load(unreadable)
    nodes = HttpNodes(
        cluster.cluster_id,
        fence.mod_revision,
        book,
        lambda: world.follower.catalog,
        world.transport,
        token=world.token,
        named_by=(config.advertise or "",),
    )
    reads = MergedReads(SettledReads(world.kv, committer.settling))
    ports = _ports(world, reads, book, nodes, holders)
    limits = _limits(config)
    manager = busy.manager = Manager(KINDS, ports, committer, limits)
    tuned = Tuned(limits, config.phi_threshold, book, manager, ports.gate, ports.reorg_width)
    settings.listen(tuned.follow)
    sequences = Sequences(world.kv, committer, config.store_deadline_ms)
    tally = HistoryTally(fence.mod_revision)
    manager.on_end(tally.ended)
    try:
        yield Term(
            cluster.cluster_id,
            fence,
            committer,
            sequences,
            manager,
            ports,
            book,
            holders,
            settings,
            tally,
            busy.ready,
            (nodes.run, reads.run, holders.run),
            adopter=HttpAdoption(world.transport, world.token, (config.advertise or "",)),
            probe=HttpSilenceProbe(world.transport, world.token, (config.advertise or "",)),
        )
    finally:
        await nodes.close()


def _book(
    world: ServerDeps,
    cluster: ClusterRecord,
    committer: Committer,
    settings: SettingsStore,
    busy: "_Busy",
) -> NodeLiveness:
    config = world.config
    now_ms = world.clock.mono_ms()
    return NodeLiveness(
        cluster_id=cluster.cluster_id,
        kv=world.kv,
        committer=committer,
        follower=world.follower,
        clock=world.clock,
        leases=LeaseTable(config.region_lease_ms, config.leader_ttl_ms, now_ms),
        settings=settings,
        timing=HeartbeatTiming(
            config.heartbeat_ms, config.region_lease_ms, config.store_deadline_ms
        ),
        phi=PhiConfig(
            threshold=config.phi_threshold,
            first_interval_ms=config.heartbeat_ms,
            pause_ms=config.phi_pause_ms,
        ),
        next_order=count(1).__next__,
        is_busy=busy,
        restored_from=cluster.restored.cluster_id if cluster.restored is not None else None,
    )


def _holders(world: ServerDeps, cluster_id: str, committer: Committer) -> HolderSync:
    config = world.config
    return HolderSync(
        cluster_id=cluster_id,
        kv=world.kv,
        committer=committer,
        follower=world.follower,
        clock=world.clock,
        book=HolderRegistry(config.schema_lease_ms, config.leader_ttl_ms, world.clock.mono_ms()),
        timing=SchemaTiming(
            config.schema_lease_ms, config.transaction_age_max_ms, config.store_deadline_ms
        ),
    )


def _ports(
    world: ServerDeps, reads: MergedReads, book: NodeLiveness, nodes: HttpNodes, holders: HolderSync
) -> Ports:
    return Ports(
        kv=reads,
        nodes=nodes,
        leases=book,
        placement=book,
        jobs=world.jobs,
        schema_sync=holders,
        clock=world.clock,
        ids=world.ids,
        rng=world.rng,
        term=nodes.term,
        deadline_ms=world.config.store_deadline_ms,
        applied=lambda: world.follower.catalog,
        is_busy=book.is_busy,
    )


async def lead(world: ServerDeps, fence: Compare, begin: Callable[[Term | None], None]) -> None:
    """Leads until the fence or the session is lost. *begin* hears of the term, and of its end."""
    async with open_term(world, fence) as term:
        supervisor = Supervisor(
            world.clock, world.ids, world.follower, term.nodes, term.settings, term.manager
        )
        begin(term)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(term.committer.run())
                for work in term.background:
                    tasks.create_task(work())
                tasks.create_task(term.manager.run(fence, term.ready))
                tasks.create_task(supervisor.run())
                tasks.create_task(housekeeping(term, world.clock))
                tasks.create_task(retirement(term, world.clock))
                tasks.create_task(CopyKeeper(term, world.clock, world.ids).run())
                tasks.create_task(OrphanKeeper(term, world.clock, world.ids).run())
                tasks.create_task(LogCompaction(term, world.kv, world.follower, world.clock).run())
                tasks.create_task(make_defaults(term, world.clock))
        finally:
            begin(None)


@dataclass(slots=True)
class _Busy:
    """Whether a living procedure gives the orders for a table's regions itself.

    Until every record has been read, any may be. Asked for each region that a node reports and the
    catalog lacks: while many creates are under way, those are many.
    """

    ready: asyncio.Event
    manager: Manager | None = None

    def __call__(self, table_id: int) -> bool:
        if self.manager is None or not self.ready.is_set():
            return True
        is_claimed = self.manager.locks.is_claimed
        return is_claimed(table_key(table_id)) or is_claimed(route_key(table_id))


def _limits(config: ServerConfig) -> Limits:
    running = {AdmissionLane.DDL: config.running_max, AdmissionLane.REPAIR: config.repair_max}
    return Limits(running, config.queue_max, config.stalled_ms)
