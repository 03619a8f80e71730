"""Lives of a log: leaders that change, snapshot, cut and die; a server that follows, or sleeps.

Its handler takes as long as is drawn. What it was given, what counted when, and which versions can
still be read is compared with what the leaders made.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from keys.catalog.follower import Follower
from keys.catalog.log.handlers import LogEvent, SnapshotEntry
from keys.catalog.snapshot_loading import load_snapshot, read_snapshots
from metasrv.leadership.log import log_policy
from metasrv.leadership.log.log_policy import HistoryLimits, LogPin
from metasrv_base.errors import MetaError
from tests.keys.catalog.snapshots import Cluster, Term, plain, scenario
from tests.keys.commit.leading_committer import DEADLINE_MS

ACTS = ("change", "change", "save", "cut", "sleep", "lead", "pin")
ACTS_OF_A_LIFE = 24
SLEEP_MS = 3_000


@dataclass
class LogLife:
    cluster: Cluster
    rng: Random
    pinned: int | None = None
    ended: list[int] = field(default_factory=list)
    """Versions whose handler has ended."""
    faults: list[str] = field(default_factory=list)
    jumps: int = 0

    async def handle(self, event: LogEvent, at_ms: int, revision: int) -> None:
        last = self.ended[-1] if self.ended else 0
        if isinstance(event, SnapshotEntry):
            self.jumps += 1
            if event.version <= last:
                self.faults.append(f"twice: a snapshot of {event.version} after {last}")
            elif plain(event.catalog) != plain(self.cluster.versions[event.version]):
                self.faults.append(f"snapshot {event.version} is no version that was")
        elif event.version != last + 1:
            self.faults.append(f"passed over: {event.version} after {last}")
        await self.cluster.store.clock.sleep_ms(self.rng.randrange(40))
        self.ended.append(event.version)

    async def live(self) -> None:
        term = await self.cluster.lead()
        store = self.cluster.store
        follower = Follower(store, store.clock, deadline_ms=DEADLINE_MS)
        follower.log.register_update_handler("drawn", self.handle)
        following = self.cluster.loop.spawn("server", follower.log.follow())
        self.cluster.loop.spawn("probe", self._probe(follower))
        for _ in range(ACTS_OF_A_LIFE):
            term = await self._act(term)
        await store.clock.sleep_ms(2 * SLEEP_MS)
        if following.done():
            self.faults.append(f"the follower has ended: {following.exception()!r}")
        elif plain(follower.catalog) != plain(term.follower.catalog):
            self.faults.append(f"catalogs differ at {follower.catalog.version}")

    async def _act(self, term: Term) -> Term:
        act = self.rng.choice(ACTS)
        if act == "lead":
            return await self.cluster.lead()
        if act == "change":
            await term.change(self.rng.randrange(1, 6))
        elif act == "save":
            await term.save()
        elif act == "cut":
            await self._cut(term)
        elif act == "sleep":
            self.cluster.loop.pause("server", SLEEP_MS)
        elif self.pinned is None:
            self.pinned = term.follower.catalog.version
        await self.cluster.store.clock.sleep_ms(self.rng.randrange(60))
        return term

    async def _cut(self, term: Term) -> None:
        """All history goes that is not pinned; etcd too is compacted."""
        store = self.cluster.store
        snapshots = await read_snapshots(store, deadline_ms=DEADLINE_MS)
        if snapshots is None:
            return
        pins = () if self.pinned is None else (LogPin("a reader", self.pinned, 0, "it reads"),)
        floor = log_policy.floor_for(snapshots.kept, HistoryLimits(0, 0), pins, 0)
        await term.writer.raise_floor(floor)
        await term.writer.collect()
        await store.compact(store.revision, deadline_ms=DEADLINE_MS)
        await self._read_pinned()

    async def _read_pinned(self) -> None:
        store = self.cluster.store
        snapshots = await read_snapshots(store, deadline_ms=DEADLINE_MS)
        if self.pinned is None or snapshots is None:
            return
        ref = snapshots.nearest(self.pinned)
        if ref is None:
            self.faults.append(f"pinned {self.pinned} is below the log")
        elif ref.version:
            await load_snapshot(store, ref, deadline_ms=DEADLINE_MS, revision=store.revision)

    async def _probe(self, follower: Follower) -> None:
        """Holds every version that counts against what has been handled."""
        while True:
            await follower.changed(follower.catalog.version)
            if not self.ended or self.ended[-1] < follower.catalog.version:
                self.faults.append(f"{follower.catalog.version} counts before its handler ended")
            if follower.catalog.version not in self.cluster.versions:
                await self.cluster.store.clock.sleep_ms(0)


def faults_of(seed: int) -> tuple[list[str], int]:
    """The faults of the life of *seed*, and how often its server took a snapshot."""
    lives: list[LogLife] = []

    async def main(cluster: Cluster) -> None:
        life = LogLife(cluster, Random(seed))
        lives.append(life)
        try:
            await life.live()
        except MetaError as error:
            life.faults.append(f"a reader or leader has failed: {error!r}")

    scenario(main)
    return lives[0].faults, lives[0].jumps


def lives(count: int) -> Iterator[tuple[int, list[str], int]]:
    for seed in range(count):
        yield (seed, *faults_of(seed))
