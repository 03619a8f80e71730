"""Bugs where one program meets another, each found by a fault between the two.

Other suites replace one of the two sides by a fake; here both are the product's own.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from dataplane.datanode.regions import rows
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.rows import RowService
from dataplane.frontend.lease.transactions import Transactions
from keys.commit.change import change
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.txn import Snapshot, Txn, snapshot
from keys.model.log import Entry, TableAltered
from keys.model.tables import TableInfo, TableInfoKey
from metasrv.adapters.http_nodes import HttpNodes
from metasrv.nodes.lease_table import LeaseTable
from metasrv_base.concurrency.reservations import HeldBytes
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.batches import GetRows
from metasrv_base.wire.node.orders import LeaseGrant
from procedures.context import Context
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.kinds.registry import KINDS
from procedures.machine import Outcome
from procedures.steps import open_and_publish
from tests.dataplane.frontend.bench import running
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.keys.commit.leading_committer import World, schema
from tests.metasrv.adapters.order_lines import NODE, by, create, lines
from tests.metasrv.nodes.leader import LEASE_MS, beat
from tests.metasrv.nodes.lease_times import NODE as LEASED_NODE
from tests.metasrv.nodes.lease_times import REGION, TTL_MS
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import MOVED, with_dead_node
from tests.procedures.kinds.failover.runs import CLIENT
from tests.sim.loop import SimClock, SimLoop, run

# ---- the line of a new leader, begun with an old read, under a clock that was set back


async def line_read_again_without_time(self: Committer) -> None:
    """The version's time is forgotten: the next commit may be stamped before the last one."""
    at_ms = self._head.at_ms
    await READ_AGAIN(self)
    self._head = replace(self._head, at_ms=at_ms)


READ_AGAIN = Committer._read_head_again


def commit_times(is_faulty: bool) -> list[str]:
    found: list[str] = []

    async def main(loop: SimLoop) -> None:
        world = await World.made(loop)
        begun = await read_log_head(world.store, world.fence, deadline_ms=DEADLINE_MS)
        first = Committer(world.store, world.store.clock, begun, deadline_ms=DEADLINE_MS)
        before = loop.spawn("first", first.run())
        done = await first.commit(schema("s"))
        before.cancel()
        line = await read_log_head(world.store, world.fence, deadline_ms=DEADLINE_MS)
        if is_faulty:
            stale_ms = done.stamp.at_ms - 3_600_000
            line = replace(line, version_revision=line.version_revision - 1, at_ms=stale_ms)
        clock = SimClock(loop, offset_ms=-3_600_000 if is_faulty else 0)
        second = Committer(world.store, clock, line, deadline_ms=DEADLINE_MS)
        loop.spawn("second", second.run())
        later = await second.commit(schema("t"))
        if later.stamp.at_ms <= done.stamp.at_ms:
            found.append(f"committed at {later.stamp.at_ms}, after {done.stamp.at_ms}")

    run(main, 1)
    return found


# ---- a lease that goes with an order, to a node that is cut off then


def not_in_the_book(self: HttpNodes, node: str, region_id: str) -> LeaseGrant | None:
    """A lease that nobody at the leader knows of."""
    held = self.book.leases
    self.book.leases = LeaseTable(held.lease_ms, held.election_ttl_ms, held.elected_at_ms)
    try:
        return GRANT(self, node, region_id)
    finally:
        self.book.leases = held


GRANT = HttpNodes._grant


def lease_of_an_order(is_faulty: bool) -> list[str]:
    async def main() -> list[str]:
        async with lines() as (nodes, node):
            book, leases = nodes.book, RegionLeases("i-1")
            clock = book.clock
            await clock.sleep_ms(60_000)  # what a predecessor granted has ended
            leases.sent(2, clock.mono_ms())
            book.heartbeat(beat(2))
            order = create(0)
            await nodes.send(NODE, [order], sender=by(0))
            told = node.requests[-1].orders[-1]
            leases.granted_by_order(int(order.region_id), 1, getattr(told, "lease", None))
            if not is_faulty:
                await clock.sleep_ms(LEASE_MS)
            free = max(book.leases.free_at_ms(NODE, [order.region_id]), clock.mono_ms())
            over = (leases.deadline_ms(int(order.region_id), 1) or 0) - free
            return [f"given away {over} ms too early"] if over > 0 else []

    return asyncio.run(main())


# ---- a lease that was renewed many times, at a node that is cut off then


def first_grant_counts(self: LeaseTable, node: str, region_ids: Any, now_ms: int) -> None:
    """A lease ends when its first grant would have ended it."""
    for region_id in region_ids:
        self._granted.setdefault(node, {}).setdefault(region_id, now_ms)
    self._last.setdefault(node, now_ms)


def renewed_lease(is_faulty: bool) -> list[str]:
    book, leases = LeaseTable(LEASE_MS, TTL_MS, elected_at_ms=-1_000_000), RegionLeases("i")
    renewals = 5
    for sequence in range(1, renewals + 1):
        now = sequence * 2_000
        leases.sent(sequence, now)
        book.granted(LEASED_NODE, [str(REGION)], now)
        leases.granted(sequence, LEASE_MS, [(REGION, 1)])
    if not is_faulty:
        leases.forget(REGION, 1)  # it closes the region when it is told to
    free = book.free_at_ms(LEASED_NODE, [str(REGION)])
    over = (leases.deadline_ms(REGION, 1) or 0) - free
    return [f"given away {over} ms too early"] if over > 0 else []


# ---- rows that take longer to read than the lease lasts


async def answered_without_a_look(
    self: RowService, region_id: int, wanted: GetRows, held: HeldBytes, bytes_max: int
) -> tuple[pa.Table, bool]:
    """The lease is looked at before the rows are computed, and not again."""
    region = self._readable(region_id, wanted).region
    keys = [bytes.fromhex(key) for key in wanted.keys]
    return await asyncio.to_thread(rows.get_bounded, region, keys, wanted, bytes_max, held)


def rows_read(is_faulty: bool) -> list[str]:
    async def main() -> list[str]:
        async with running() as bench:
            (placed,) = bench.table.regions
            desk, region_id = RowService(bench.node), int(placed.region_id)
            region = bench.node.serving(region_id).owner.region  # type: ignore[union-attr]
            until = bench.node.serving(region_id)
            get = region.reader.get

            def slow(*asked: Any) -> pa.Table:
                found = get(*asked)
                if is_faulty:
                    bench.clock.advance(10**9)  # as long as its lease
                return found

            region.reader.get = slow  # type: ignore[method-assign]
            wanted = GetRows(
                table_id=bench.table.id, schema_version=1, epoch=until.epoch, keys=["00"]
            )
            try:
                with desk.reading_keys() as slot:
                    await desk.get_arrow(region_id, wanted, slot)
            except MetaError as error:
                return [] if is_faulty else [str(error)]
            held = bench.node.has_lease(region_id, until.epoch)
            return [] if held else ["rows were answered without a lease"]

    return asyncio.run(main())


# ---- a transaction that runs on while others have begun at the next version


def newest_pins(self: Transactions, now_ms: int) -> tuple[object, ...]:
    """For each table the version that was bound last."""
    other = Transactions()
    other._open = dict([list(self._open.items())[-1]])
    return PINS(other, now_ms)


PINS = Transactions.pins


def pins_of_transactions(is_faulty: bool) -> list[str]:
    transactions = Transactions()
    slow = transactions.begin(0)
    transactions.bind(slow, 1024, 1)
    if not is_faulty:
        transactions.end(slow)
    transactions.bind(transactions.begin(5), 1024, 2)
    used = min(one.bound[1024] for one in transactions._open.values())
    told = [pin.schema_version for pin in transactions.pins(10)]
    return [] if told == [used] else [f"version {used} is used, told {told}"]


# ---- a floor that rises between the order to open and its announcement


def only_the_route(read: Snapshot, *entries: Entry) -> Txn:
    """Announces whatever became of TableInfo since it was sent."""
    txn, (start, end) = change(read, *entries), TableInfoKey.under()
    kept = {key: at for key, at in txn.expect.items() if not start <= key < end}
    return replace(txn, expect=kept)


def floor_raised(is_faulty: bool) -> list[str]:
    async def main(loop: SimLoop) -> list[str]:
        raised: list[TableInfo] = []
        wrong: list[str] = []

        async def opening(state: FailoverTable, at: Context) -> Outcome[FailoverTable]:
            outcome = await FAILOVER_TABLE.steps["open"].act(state, at)
            if is_faulty and not raised:
                raised.append(await raise_floor(cluster))
            return outcome

        async def serving(state: FailoverTable, at: Context) -> Outcome[FailoverTable]:
            wrong.extend(below_floor(cluster, raised[0].schema_floor if raised else 1))
            return await FAILOVER_TABLE.steps["serve"].act(state, at)

        rows = {
            "open": replace(FAILOVER_TABLE.steps["open"], act=opening),
            "serve": replace(FAILOVER_TABLE.steps["serve"], act=serving),
        }
        kind = replace(FAILOVER_TABLE, steps={**FAILOVER_TABLE.steps, **rows})
        cluster = Cluster(loop, {**KINDS, "failover_table": kind})
        await with_dead_node(cluster, await cluster.bootstrap())
        await cluster.started()
        submission = SubmitRequest(cluster.ids.procedure_id(), CLIENT, "")
        await cluster.leader.manager.submit(kind, MOVED, submission)
        return wrong if await cluster.quiet() else [*wrong, "never ends"]

    return run(main, 1)


def below_floor(cluster: Cluster, floor: int) -> list[str]:
    """Regions that have just been announced, and do not know the floor that stands in TableInfo."""
    (route,) = history_of(cluster.kv._store.log_from(1)).family("__table_route").values()
    known = {
        region["region_id"]: cluster.plane.storage.folders[region["root"]].schema_floor
        for region in route["region_routes"]
        if region["epoch"] > 1
    }
    return [
        f"{name} knows {at}, below the floor {floor}" for name, at in known.items() if at < floor
    ]


async def raise_floor(cluster: Cluster) -> TableInfo:
    key = TableInfoKey(TABLE)
    seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    info = seen.must(key)
    floor = info.schema_floor + 1
    new = info.model_copy(update={"schema_floor": floor, "version": info.version + 1})
    committer = cluster.leader.committer
    assert committer is not None
    await committer.commit(change(seen, TableAltered(info=new)))
    return new


@dataclass(frozen=True)
class Seam:
    where: object
    name: str
    planted: object
    lived: Callable[[bool], list[str]]
    """Given whether the fault happens: what is wrong."""
    check: str


PLANTED = {
    "a line read again forgets the time": Seam(
        Committer,
        "_read_head_again",
        line_read_again_without_time,
        commit_times,
        "committed at",
    ),
    "the lease of an order is not in the book": Seam(
        HttpNodes, "_grant", not_in_the_book, lease_of_an_order, "too early"
    ),
    "a lease counted from its first grant": Seam(
        LeaseTable, "granted", first_grant_counts, renewed_lease, "too early"
    ),
    "rows answered without another look at the lease": Seam(
        RowService, "_get", answered_without_a_look, rows_read, "without a lease"
    ),
    "the newest pin is told": Seam(
        Transactions, "pins", newest_pins, pins_of_transactions, "is used, told"
    ),
    "announced without a compare of the table": Seam(
        open_and_publish, "change", only_the_route, floor_raised, "below the floor"
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_no_bug_when_the_fault_of_a_seam_happens_then_nothing_is_wrong(bug: str) -> None:
    assert [PLANTED[bug].lived(is_faulty) for is_faulty in (False, True)] == [[], []]


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_of_a_seam_when_its_fault_happens_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seam = PLANTED[bug]
    monkeypatch.setattr(seam.where, seam.name, seam.planted)

    assert seam.lived(False) == [], "found without a fault"
    found = "; ".join(seam.lived(True))

    with capsys.disabled():
        print(f"\n{bug}: {found[:120]}", end="")
    assert seam.check
    assert seam.check in found
