"""A store with one leader after the other, snapshots, and catalogs in comparable form."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, fields, replace

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.large.unfinished import keys_left
from keys.catalog.snapshot_codec import catalog_of, parts_of
from keys.catalog.snapshot_writing import SnapshotWriter
from keys.commit.bootstrap import bootstrap_request
from keys.commit.change import change
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.txn import Read, Snapshot
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.log import SchemaCreated
from keys.model.snapshot.snapshots import (
    PartsDigest,
    SnapshotPart,
    SnapshotRef,
    SnapshotVersionKey,
)
from keys.store.kv import Get, KeyPage, Watched
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv_base.errors import MetaError
from tests.keys.commit.leading_committer import DEADLINE_MS, Store, elect
from tests.sim.loop import SimClock, SimLoop, run


def ref_of(catalog: Catalog, parts: list[bytes]) -> SnapshotRef:
    digest = PartsDigest()
    for raw in parts:
        digest.add(raw)
    return SnapshotRef(
        version=catalog.version,
        revision=catalog.revision,
        at_ms=catalog.at_ms,
        parts=len(parts),
        size_bytes=sum(map(len, parts)),
        log_bytes=0,
        digest=str(digest),
        made_at_ms=1,
    )


def decoded(parts: list[bytes]) -> list[SnapshotPart]:
    return [decode(SnapshotPart, raw, key="part") for raw in parts]


def restored(catalog: Catalog) -> Catalog:
    parts = list(parts_of(catalog))
    return catalog_of(ref_of(catalog, parts), parts)


def plain(catalog: Catalog) -> dict[str, object]:
    """Every field, in a form that does not tell in which order it came about."""
    shown = {each.name: getattr(catalog, each.name) for each in fields(catalog)}
    del shown["shapes"]
    shown["ordered"] = {schema: list(names) for schema, names in catalog.ordered.items()}
    shown["states"] = {state: count for state, count in catalog.states.items() if count}
    return shown


@dataclass
class Cluster:
    """A bootstrapped store with one leader after the other, and all versions that ever were."""

    loop: SimLoop
    store: Store
    versions: dict[int, Catalog] = field(default_factory=dict)
    terms: int = 0
    catalog: Catalog = field(default_factory=Catalog)

    @classmethod
    async def made(cls, loop: SimLoop) -> "Cluster":
        store = Store(SimClock(loop))
        fence = await elect(store, "meta-0")
        await store.apply(bootstrap_request(fence, "c", store.clock.wall_ms()))
        return cls(loop, store)

    async def lead(self) -> "Term":
        """The next term. The one before is not told."""
        self.terms += 1
        fence = await elect(self.store, f"meta-{self.terms}")
        line = await read_log_head(self.store, fence, deadline_ms=DEADLINE_MS)
        follower = Follower(self.store, self.store.clock, deadline_ms=DEADLINE_MS)
        await follower.log.load()
        committer = Committer(self.store, self.store.clock, line, deadline_ms=DEADLINE_MS)
        follower.log.lead(committer)
        committer.on_update(lambda update, revision: self._keep(follower))
        left = await keys_left(self.store, fence, follower, deadline_ms=DEADLINE_MS)
        if left is not None:
            committer.finish(left)
        self._keep(follower)
        self.loop.spawn(f"leader-{self.terms}", _until_deposed(committer))
        writer = SnapshotWriter(self.store, committer, deadline_ms=DEADLINE_MS)
        return Term(self, committer, follower, writer)

    def _keep(self, follower: Follower) -> None:
        self.catalog = follower.catalog
        self.versions[self.catalog.version] = self.catalog

    def keys(self, prefix: bytes) -> list[str]:
        return [item.key.decode() for item in self.store.dump() if item.key.startswith(prefix)]


async def _until_deposed(committer: Committer) -> None:
    try:
        await committer.run()
    except MetaError:
        return


@dataclass
class Term:
    cluster: Cluster
    committer: Committer
    follower: Follower
    writer: SnapshotWriter

    async def change(self, count: int = 1) -> None:
        for _ in range(count):
            number = self.follower.catalog.version
            info = SchemaInfo(schema_id=number, catalog="main", name=f"s{number}", created_at_ms=1)
            key = SchemaNameKey("main", info.name)
            read = Snapshot(0, {bytes(key): Read(None, 0)})
            await self.committer.commit(change(read, SchemaCreated(info=info)))

    async def save(self) -> bool:
        return await self.writer.save(self.follower.catalog, log_bytes=1, now_ms=1)


class Past(MemoryKv):
    """A store as it was at one revision."""

    def __init__(self, store: Store, revision: int) -> None:
        super().__init__(store.clock)
        self._store = store._store
        self._at = revision

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        return await super().range(get, deadline_ms=deadline_ms, revision=revision or self._at)


class Forgetful(Store):
    """The same store, whose watches never tell which snapshots are kept."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.clock)
        self._store, self._watchers = store._store, store._watchers

    async def watch(
        self, key: bytes, end: bytes, *, start_revision: int
    ) -> AsyncGenerator[Watched, None]:
        snapshots = bytes(SnapshotVersionKey())
        async for watched in super().watch(key, end, start_revision=start_revision):
            told = tuple(event for event in watched.events if event.key != snapshots)
            yield replace(watched, events=told)


async def loaded_at(store: Store, revision: int) -> Catalog:
    follower = Follower(Past(store, revision), store.clock, deadline_ms=DEADLINE_MS)
    await follower.log.load()
    return follower.catalog


def scenario(main: Callable[[Cluster], Awaitable[None]]) -> None:
    async def begin(loop: SimLoop) -> None:
        loop.thread_ms = lambda: 1.0
        await main(await Cluster.made(loop))

    run(begin, 1)
