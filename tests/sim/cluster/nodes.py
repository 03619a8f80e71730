"""A datanode in the simulation: its real parts over a disk in memory and a network that fails."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from dataplane.datanode.copies.copy_sessions import CopySessions
from dataplane.datanode.copies.copy_upkeep import CopyUpkeep
from dataplane.datanode.copies.file_fetches import FETCHES_MAX, FileFetches
from dataplane.datanode.copies.followed import CopyAppends
from dataplane.datanode.copies.peers import HttpPeers
from dataplane.datanode.copies.set_changes import SetChanges
from dataplane.datanode.copies.transfer_rate import TransferRate
from dataplane.datanode.http.app import build_app
from dataplane.datanode.membership.adoption import NodeAdoption
from dataplane.datanode.membership.heartbeat import HeartbeatLoop, HeartbeatPorts
from dataplane.datanode.membership.membership import Membership, NodeIdentity
from dataplane.datanode.membership.metasrv import HttpNodeLeader, NodeCopySets
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.orders.journal import open_journal
from dataplane.datanode.orders.orders import OrderExecutor
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
from dataplane.datanode.service import DatanodeService
from dataplane.datanode.upkeep.copy_merging import CopyMerging
from dataplane.datanode.upkeep.merging import Merging
from dataplane.datanode.upkeep.upkeep import Upkeep
from dataplane.region.copies.leader_silence import LeaderSilence
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.memory.budget import MemoryBudget
from dataplane.region.place import RegionLimits
from metasrv_base.engines import LSM
from metasrv_base.errors import Conflict, Unavailable, Unknown
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.nodes import NodeResources
from tests.sim.cluster.disks import Disks, ProcessDisk
from tests.sim.cluster.net import Network, Wire
from tests.sim.loop import SimClock, SimLoop

RESOURCES = NodeResources(
    cpu_cores=2,
    memory_bytes=1 << 33,
    memory_free_bytes=1 << 32,
    disk_bytes=1 << 40,
    disk_free_bytes=1 << 39,
)


FETCH_BYTES_PER_S = 8 << 20
FAILED_SYNC = "a sync that failed"


class Machine:
    """Implements dataplane.datanode.membership.heartbeat.Machine."""

    async def folders(self) -> tuple[str, ...]:
        return ()

    async def resources(self) -> NodeResources:
        return RESOURCES


@dataclass(eq=False)
class Datanode:
    """A machine, and the process on it while there is one."""

    name: str
    loop: SimLoop
    network: Network
    disks: Disks
    clock: SimClock
    metasrvs: Sequence[str]
    limits: RegionLimits
    engines: tuple[str, ...] = (LSM,)
    """Names of the region engines that its process has."""
    has_copies: bool = False
    """Whether it leads or follows regions with copies: only then its loops for them run."""
    node: str = ""
    """Name of its node in the loop: the process that was started last."""
    disk: ProcessDisk | None = None
    service: DatanodeService | None = None
    gave_up: bool = False
    """It ended by itself, as a process does that may never serve again."""
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    @property
    def url(self) -> str:
        return f"http://{self.name}:9000"

    @property
    def root(self) -> str:
        return f"/{self.name}/data"

    @property
    def is_up(self) -> bool:
        return bool(self.node) and not self.loop.is_dead(self.node)

    def start(self) -> None:
        assert not self.is_up, "one process for a root"
        self.gave_up = False
        number = next(self._numbers)
        self.node = f"{self.name}#{number}"
        self.disk = ProcessDisk(
            *(self.disks, self.loop, self.node),
            on_death=self.kill,
            on_failed_sync=lambda: self.network.weather.sometimes.update([FAILED_SYNC]),
        )
        self.loop.spawn(self.node, self._live(self.disk, f"{self.name}-{number}"))

    def kill(self) -> None:
        if self.is_up:
            self.loop.kill(self.node)
            self.network.died(self.node)
            self.service = None

    def lose_power(self, kept_bytes: int, kept_names: bool, torn: int | None = None) -> None:
        """Loses what was not synced, or some of it (MemoryStore.crash)."""
        self.kill()
        self.disks.store(self.root).crash(kept_bytes, kept_names, torn)

    async def _live(self, disk: ProcessDisk, incarnation: str) -> None:
        try:
            await self._run(disk, incarnation)
        except* (
            Conflict,
            Unavailable,
            Unknown,
        ) as group:  # its id is another's, its disk failed
            self.loop.trace("gave up", self.node, str(group.exceptions[0]))
            self.kill()
            self.gave_up = True

    async def _run(self, disk: ProcessDisk, incarnation: str) -> None:
        """As dataplane.datanode.main puts it together."""
        journal = await asyncio.to_thread(open_journal, disk, self.root, self.name)
        zone = f"zone-{self.name}"
        identity = NodeIdentity(self.name, incarnation, self.url, zone, self.root, self.engines)
        client = HttpClient(self.metasrvs, transport=Wire(self.network))
        leases = RegionLeases(incarnation)
        store = DiskStore(disk, self.clock, self.root, self.limits, BlockCache(1 << 20), ("/",))
        async with asyncio.TaskGroup() as tasks:

            def spawn(work: Coroutine[Any, Any, None]) -> object:
                return tasks.create_task(work)

            peers = HttpPeers(None, self.metasrvs, Wire(self.network))
            regions = NodeRegionSet(store, leases, self.clock, spawn, peers)
            desk = OrderExecutor(journal, regions)
            membership = Membership(identity, journal.state.cluster_id)
            leader = HttpNodeLeader(client)
            world = HeartbeatPorts(leader, Machine(), self.clock, leases)
            heart = HeartbeatLoop(membership, desk, journal, regions, world)
            metrics = NodeMetrics()
            promises = PromisePorts(
                *(membership, regions, self.clock, LeaderSilence(), metrics.promised),
                NodeCommonPositions(regions),
            )
            sessions = CopySessions(regions.led, membership, self.clock)
            self.service = DatanodeService(
                membership,
                desk,
                regions,
                RowService(regions),
                CopyAppends(regions.followed, partial(self._heard, promises.silence)),
                sessions,
                leases,
                self.clock,
                metrics,
                heart.execute,
                NodeAdoption(membership, heart, desk, journal, regions, disk),
                PromiseDesk(promises),
            )
            self.network.listen(self.url, self.node, build_app(self.service))
            tasks.create_task(heart.run())
            tasks.create_task(heart.run_instructions())
            tasks.create_task(Upkeep(regions, self.clock).run())
            tasks.create_task(Merging(regions, self.clock, metrics).run())
            if self.has_copies:
                tasks.create_task(sessions.run())
                tasks.create_task(CopyMerging(regions.copies, self.clock, metrics).run())
                for loop in self._of_copies(promises, regions, peers, leader):
                    tasks.create_task(loop)

    def _heard(self, silence: LeaderSilence, leader: str) -> None:
        silence.note_request(leader, self.clock.mono_ms())

    def _of_copies(
        self,
        promises: PromisePorts,
        regions: NodeRegionSet,
        peers: HttpPeers,
        leader: HttpNodeLeader,
    ) -> Iterator[Coroutine[Any, Any, None]]:
        """The loops that a node with copies has beside the others."""
        sets = NodeCopySets(promises.membership, leader)
        retire = regions.retire_copy
        yield CopyUpkeep(regions.copies, self.clock, MemoryBudget(), retire).run()
        yield SetChanges(regions.led, sets, self.clock).run()
        rate = TransferRate(self.clock, FETCH_BYTES_PER_S)
        fetches = FileFetches(regions.copies, peers, promises.membership, self.clock, rate)
        for _ in range(FETCHES_MAX):
            yield fetches.run()
        yield fetches.run(named_only=True)
        yield PromiseAsker(promises, peers).run()
        yield SilenceReports(promises, partial(followed_here, regions), leader).run()
