"""Leaders that come and go over one store, in virtual time, and what holders tell them."""

from dataclasses import dataclass, field

from keys.catalog.follower import Follower
from keys.commit.bootstrap import bootstrap_request
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.txn import Txn, snapshot
from keys.model.cluster import LeaderKey, LeaderRecord
from keys.model.holders import HolderKey, HolderRecord
from keys.model.log import Entry, TableAltered, TableCreated
from keys.store.kv import Compare, Kv, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.holders.holder_registry import HolderRegistry
from metasrv.holders.sync import HolderSync, SchemaLeaseTiming
from metasrv.nodes.lease_table import wait_ms
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import MetaError
from metasrv_base.wire.frontend.holders import AcknowledgeAnswer, HolderRegisterAnswer, Pin
from tests.keys.commit.changes import told
from tests.metasrv.holders.samples import CLUSTER, acknowledgement, registration
from tests.procedures.harness.tables import table_info, table_route
from tests.sim.loop import SimClock, SimLoop

DEADLINE_MS = 1_000
LEASE_MS, TTL_MS = 15_000, 5_000
W_MS = wait_ms(LEASE_MS)
TABLE = 1024


@dataclass
class Served:
    """One leader's term."""

    name: str
    sync: HolderSync
    follower: Follower
    committer: Committer

    async def register(
        self, holder_id: str, incarnation: str, *pinned: Pin
    ) -> HolderRegisterAnswer:
        said = registration(holder_id, incarnation=incarnation, pinned=pinned)
        return await self.sync.register(said)

    def acknowledge(
        self, holder_id: str, sequence: int, *pinned: Pin, version: int | None = None
    ) -> AcknowledgeAnswer:
        at = self.follower.catalog.version if version is None else version
        return self.sync.acknowledge(acknowledgement(holder_id, sequence, at, *pinned))

    async def publish(self, schema_version: int) -> None:
        """The table has that schema version when this returns."""
        info = table_info(TABLE, "t", 1)
        new = info.model_copy(update={"version": schema_version, "schema_version": schema_version})
        created = TableCreated(info=info, route=table_route(TABLE, ("dn-1",)))
        entry: Entry = created if schema_version == 1 else TableAltered(info=new)
        await self.committer.commit(told(Txn(), entry))

    async def hide(self, schema_version: int) -> None:
        """The table has that schema version, and nobody finds it any more."""
        info = table_info(TABLE, "t", 1)
        update = {"schema_version": schema_version, "state": ElementState.WRITE_ONLY}
        entry = TableAltered(info=info.model_copy(update=update))
        await self.committer.commit(told(Txn(), entry))


class JumpingClock(SimClock):
    """Its wall clock can be set."""

    ahead_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.ahead_ms

    def jump(self, ms: int) -> None:
        self.ahead_ms += ms


@dataclass
class Office:
    """`book`: the class of every term's book; planted bugs are others."""

    loop: SimLoop
    book: type[HolderRegistry] = HolderRegistry
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = JumpingClock(self.loop)
        self.kv = MemoryKv(self.clock)

    async def elect(self, name: str, store: Kv | None = None) -> Served:
        """Whoever led before does so no more, as far as the store goes. Its tasks live on until
        the loop kills them (`SimLoop.kill`)."""
        kv = store or self.kv
        seat = LeaderRecord(server=name, url=f"http://{name}", lease="1")
        write = Put(bytes(LeaderKey()), encode(seat))
        won = await self.kv.txn(Request(writes=(write,)), deadline_ms=DEADLINE_MS)
        fence = Compare(bytes(LeaderKey()), won.revision)
        first = bootstrap_request(fence, CLUSTER, self.clock.wall_ms())
        await self.kv.txn(first, deadline_ms=DEADLINE_MS)
        committer = Committer(
            kv,
            self.clock,
            await read_log_head(self.kv, fence, deadline_ms=DEADLINE_MS),
            deadline_ms=DEADLINE_MS,
        )
        follower = Follower(self.kv, self.clock, deadline_ms=DEADLINE_MS)
        follower.log.lead(committer)
        await follower.log.load()
        sync = HolderSync(
            cluster_id=CLUSTER,
            kv=kv,
            committer=committer,
            follower=follower,
            clock=self.clock,
            book=self.book(LEASE_MS, TTL_MS, self.clock.mono_ms()),
            timing=SchemaLeaseTiming(LEASE_MS, 10_000, DEADLINE_MS),
        )
        await sync.load()
        self.loop.spawn(name, self._quietly(committer))
        self.loop.spawn(name, sync.run())
        return Served(name, sync, follower, committer)

    async def _quietly(self, committer: Committer) -> None:
        """Ends with its fence, as a term does."""
        try:
            await committer.run()
        except MetaError:
            return

    async def stored(self, holder_id: str) -> HolderRecord | None:
        key = HolderKey(holder_id)
        return (await snapshot(self.kv, key, deadline_ms=DEADLINE_MS)).get(key)
