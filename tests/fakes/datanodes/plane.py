"""The data plane of one world: its nodes with their leases, and its jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable, Unknown
from metasrv_base.lease import usable_ms
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    Job,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    ValidateJob,
    ValidateResult,
)
from metasrv_base.wire.node.orders import (
    CreateRegion,
    IngestFiles,
    OpenRegion,
    Order,
    OrderResult,
    SetSchema,
)
from procedures.ports import Progress
from tests.fakes.datanodes.checked_rows import faults, of_rows
from tests.fakes.datanodes.disk import Rows, Storage
from tests.fakes.datanodes.index_rows import backfilled, broken
from tests.fakes.datanodes.loaded_rows import loaded, routed
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.serving import Opening, Serving, data_file

LEASE_MS = 10_000
UNANSWERED = (Opening.ASKED, Opening.FENCED, Opening.MADE)


@dataclass
class Plane:
    """The state that outlives every server."""

    clock: Clock
    storage: Storage = field(default_factory=Storage)
    nodes: dict[str, FakeNode] = field(default_factory=dict)
    leases: dict[tuple[str, str], int] = field(default_factory=dict)
    """(node, region) -> when its lease ends as the node counts it, monotonic ms."""
    leased: dict[tuple[str, str], int] = field(default_factory=dict)
    """The epoch that each of those leases is for."""
    brought: dict[str, Rows] = field(default_factory=dict)
    """Files of users, by path."""
    told: list[tuple[str, Order]] = field(default_factory=list)
    """Every order that arrived, with its node."""
    instructed: list[tuple[str, Order]] = field(default_factory=list)
    """Orders among them that came with the answer to a heartbeat."""
    openers_die: list[Opening] = field(default_factory=list)
    """The first node that is ordered to open a region dies at the first of these, and so on."""
    wipes_unannounced: bool = False
    """Deletes the folders that such a node had made for orders that it has not answered."""
    joining: set[str] = field(default_factory=set)
    """Regions whose learners join with a heartbeat; those of the others stay learners."""
    violations: list[str] = field(default_factory=list)
    """Violations of what must always hold; never raised into the code under test."""
    watch: Callable[[], None] = lambda: None
    """Looks at all this after every request: nothing may be wrong for a moment either."""

    def add(self, *node_ids: str) -> None:
        for node_id in node_ids:
            self.nodes[node_id] = FakeNode(node_id, self.storage)

    def lease(self, node: str, region_id: str, epoch: int) -> None:
        """Granted by an earlier leader, for a heartbeat of this moment."""
        self.leases[node, region_id] = self.clock.mono_ms() + usable_ms(LEASE_MS)
        self.leased[node, region_id] = epoch

    def granted(
        self, node: FakeNode, sequence: int, lease_ms: int, region_id: str, epoch: int
    ) -> None:
        """As dataplane/datanode/regions/leases.py: from before that heartbeat was sent, and
        never less.
        """
        sent_ms, serving = node.sent_ms.get(sequence), node.serving.get(region_id)
        if serving is not None and serving.has_set:
            self.leases.pop((node.node_id, region_id), None)
            return
        if sent_ms is None:
            return
        held, until_ms = (node.node_id, region_id), sent_ms + usable_ms(lease_ms)
        if self.leased.get(held) == epoch:
            until_ms = max(until_ms, self.leases.get(held, until_ms))
        self.leases[held], self.leased[held] = until_ms, epoch

    def execute(self, node: str, term: int, orders: Sequence[Order]) -> tuple[OrderResult, ...]:
        """Each request arrives twice: the second changes nothing. For the last order of each region
        it is answered the same; a node does not keep the answers to those before."""
        self.told += [(node, order) for order in orders]
        self._doom(node, orders)
        first = self.nodes[node].execute(term, orders)
        self._bury(node, orders)
        effects = len(self.nodes[node].effects)
        again = self.nodes[node].execute(term, orders)
        if all(r.error is None for r in first) and not _is_repeat(orders, first, again):
            self.violations.append(f"a repeat was answered differently: {orders}")
        if len(self.nodes[node].effects) != effects:
            self.violations.append(f"a repeat had an effect: {orders}")
        for order, result in zip(orders, first, strict=True):
            if result.error is None and isinstance(order, SetSchema | IngestFiles):
                self._replicate(node, order)
            if result.error is None and isinstance(order, CreateRegion | OpenRegion):
                if order.role == "copy":
                    continue
                self._check_overlap(node, order)
                self._granted_by(node, order)
        self.watch()
        return first

    def _replicate(self, node: str, order: SetSchema | IngestFiles) -> None:
        """The change is a record of the leader's log: the copies that follow it have it, too."""
        leader = self.storage.read(self.nodes[node].serving[order.region_id].root)
        for other in self.nodes.values():
            copy = other.following.get(order.region_id)
            if copy is not None and copy.epoch == order.epoch:
                self.storage.read(copy.root).take_change(leader)

    def _doom(self, node: str, orders: Sequence[Order]) -> None:
        entry = self.nodes[node]
        opens = any(
            isinstance(one, OpenRegion) and one.region_id not in entry.serving for one in orders
        )
        if self.openers_die and entry.dies_at is None and opens:
            entry.dies_at = self.openers_die.pop(0)

    def _bury(self, node: str, orders: Sequence[Order]) -> None:
        """Raises Unknown for who has died while it was asked."""
        entry = self.nodes[node]
        if entry.dies_at is None:
            return
        is_told = entry.alive
        if entry.dies_at is Opening.ANSWERED:
            entry.die()
        if is_told:
            return
        for order in orders if self.wipes_unannounced and entry.dies_at in UNANSWERED else ():
            if isinstance(order, OpenRegion):
                self.storage.folders.pop(order.root, None)
        raise Unknown(what="node", name=node)

    def _granted_by(self, node: str, order: CreateRegion | OpenRegion) -> None:
        entry, lease = self.nodes[node], order.lease
        if lease is not None and lease.incarnation == entry.incarnation:
            where = (order.region_id, order.epoch)
            self.granted(entry, lease.heartbeat, lease.lease_ms, *where)

    def _check_overlap(self, node: str, order: CreateRegion | OpenRegion) -> None:
        now = self.clock.mono_ms()
        for (other, region_id), ends_at in self.leases.items():
            if region_id == order.region_id and other != node and ends_at > now:
                self.violations.append(f"{region_id} opened on {node} while {other} has a lease")

    def usable(self, region_id: str) -> list[Serving]:
        """Returns the copies that answer clients, on any node: under a lease of that very epoch.
        Clients may still reach a node that the leader does not."""
        now = self.clock.mono_ms()
        return [
            held
            for node in self.nodes.values()
            if (held := node.serving.get(region_id)) is not None
            and self.leases.get((node.node_id, region_id), now) > now
            and self.leased[node.node_id, region_id] == held.epoch
        ]

    def rows(self, region_id: str) -> Rows | None:
        """Returns the rows that a client can read of a region; None: no living node serves it."""
        for node in self.nodes.values():
            if node.alive and region_id in node.serving:
                return self.storage.folders[node.serving[region_id].root].rows
        return None


def _is_repeat(
    orders: Sequence[Order], first: Sequence[OrderResult], again: Sequence[OrderResult]
) -> bool:
    last = {order.region_id: number for number, order in enumerate(orders)}
    return all(
        told == result
        if last[order.region_id] == number
        else told.error is not None and told.error.code == "outcome-unknown"
        for number, (order, result, told) in enumerate(zip(orders, first, again, strict=True))
    )


@dataclass
class FakeJobs:
    """The Jobs port: everything at once, and what it writes in a folder of the attempt."""

    plane: Plane
    failures: int = 0
    """So many jobs fail before one succeeds; each leaves its folder."""
    throttled: list[tuple[str, int | None]] = field(default_factory=list)

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        out = self._folder_of(job.borrowed.root, job.attempt)
        total = len(job.borrowed.files) + len(job.borrowed.segments)
        named = [(file.root, file.file.name) for file in job.borrowed.files]
        named += [(segment.root, segment.name) for segment in job.borrowed.segments]
        for done, (root, name) in enumerate(named):
            rows = self.plane.storage.read(root).files[name]
            out[f"{job.attempt}/{done}-{name}.parquet"] = rows
            progress(done + 1, total, "files")
        self._fail_in_turn(job)
        count_of = sum(len(rows) for rows in out.values())
        return MoveResult(
            job_id=job.job_id,
            files=[data_file(name, rows) for name, rows in out.items()],
            rows_in=count_of,
            rows_out=count_of,
            bytes_in=count_of,
            bytes_out=count_of,
            copied_files=len(job.borrowed.files),
            rewritten_segments=len(job.borrowed.segments),
        )

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        """The index's entries, by the product's own code."""
        out = self._folder_of(job.snapshot.root, job.attempt)
        rows = self._rows_of(job.snapshot)
        entries, duplicates, total = backfilled(job, rows)
        progress(len(rows), len(rows), "rows")
        if entries:
            out[f"{job.attempt}/entries.parquet"] = entries
        self._fail_in_turn(job)
        files = [data_file(name, held) for name, held in out.items()]
        return BackfillResult(
            job_id=job.job_id,
            files=[one.model_copy(update={"family": job.index.id}) for one in files],
            rows_in=len(rows),
            entries=len(entries),
            bytes_in=len(rows),
            bytes_out=len(entries),
            duplicates=list(duplicates),
            duplicates_total=total,
        )

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        rows = self._rows_of(job.snapshot)
        found, total = broken(job, rows)
        progress(len(rows), len(rows), "rows")
        self._fail_in_turn(job)
        return ValidateResult(
            job_id=job.job_id,
            rows_in=len(rows),
            violations=list(found),
            violations_total=total,
        )

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        """By the product's own code, of what is in the region's folder by now."""
        rows = self._rows_of(of_rows(job.snapshot))
        entries = self.plane.storage.read(job.snapshot.root).entries
        progress(len(rows), len(rows), "rows")
        self._fail_in_turn(job)
        return CheckResult(
            job_id=job.job_id,
            rows_in=len(rows),
            entries=sum(map(len, entries.values())),
            faults=faults(job, rows, entries),
        )

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        """Loads rows, and refuses them, by the product's own rules."""
        rows = frozenset[str]().union(*(self.plane.brought[path] for path in job.paths))
        by_region = routed(job, rows)
        progress(len(rows), len(rows), "rows")
        for region in job.regions:
            if region.number in by_region:
                out = self._folder_of(region.root, job.attempt)
                out[f"{job.attempt}/rows.parquet"] = by_region[region.number]
        self._fail_in_turn(job)
        return loaded(job, rows, by_region)

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        self.throttled.append((job_id, rows_per_s))

    def _folder_of(self, root: str, attempt: str) -> dict[str, Rows]:
        own = self.plane.storage.read(root)
        if attempt in own.attempts:
            self.plane.violations.append(f"attempt {attempt} is written twice")
        return own.attempts.setdefault(attempt, {})

    def _rows_of(self, snapshot: Snapshot) -> Rows:
        """Raises Unavailable `region-lost` for an input that is gone."""
        found: set[str] = set()
        for one in snapshot.files:
            files = self.plane.storage.read(one.root).files
            if one.file.name not in files:
                raise Unavailable("region-lost", root=one.root, file=one.file.name)
            found |= files[one.file.name]
        return frozenset(found)

    def _fail_in_turn(self, job: Job) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable(what="job", name=job.job_id)
