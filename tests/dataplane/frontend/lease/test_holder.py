"""A frontend's lease in virtual time, with a leader that answers and one that is silent."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.lease.holder import HolderLoop, HolderPorts
from dataplane.frontend.lease.latency import Latency
from dataplane.frontend.lease.transactions import Transactions
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable
from metasrv_base.wire.frontend.feed import SnapshotLine, Update
from tests.dataplane.frontend.leader import ACKNOWLEDGE_MS, LEASE_MS, FakeLeader
from tests.dataplane.frontend.tables import TABLE_ID, feed_table
from tests.sim.loop import WORLD, SimClock, SimLoop, run

SILENT = Unavailable("not-ready", what="the leader")


@dataclass
class Scene:
    clock: SimClock
    leader: FakeLeader
    catalog: LiveCatalog
    transactions: Transactions
    holder: HolderLoop
    task: "asyncio.Task[None]"
    feed: "Reloaded"

    @property
    def reloads(self) -> list[int]:
        return self.feed.times_ms

    async def wait(self, ms: int) -> None:
        await self.clock.sleep_ms(ms)

    def apply(self, version: int) -> None:
        """The catalog moves on to it; each version changes the table."""
        while (at := self.catalog.version or 0) < version:
            table = feed_table(schema_version=at + 1)
            self.catalog.take(Update(version=at + 1, tables=(table,)))

    @property
    def told(self) -> list[int]:
        """Versions acknowledged."""
        return [request.version for _, request in self.leader.acknowledgements]


@dataclass
class Reloaded:
    """A feed that reads a snapshot of what is known when it is asked to, while it can."""

    catalog: LiveCatalog
    clock: SimClock
    times_ms: list[int]
    can: bool = True

    def reload(self) -> None:
        self.times_ms.append(self.clock.mono_ms())
        if self.can:
            version = self.catalog.version or 0
            table = feed_table(schema_version=version)
            self.catalog.take(SnapshotLine(version=version, tables=(table,), is_last=True))


def play(scenario: Callable[[Scene], Awaitable[None]], *, has_catalog: bool = True) -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        leader = FakeLeader(clock)
        catalog = LiveCatalog(lambda: holder.tell())
        transactions = Transactions(lambda table, version: holder.freed(table, version))
        feed = Reloaded(catalog, clock, [])
        world = HolderPorts(leader, clock, feed.reload, lambda urls: None)
        holder = HolderLoop("fe-1", "http://127.0.0.1:2", catalog, transactions, Latency(), world)
        if has_catalog:
            catalog.take(SnapshotLine(version=1, tables=(feed_table(),), is_last=True))
        task = loop.spawn(WORLD, holder.run())
        await clock.sleep_ms(1)
        await scenario(Scene(clock, leader, catalog, transactions, holder, task, feed))
        task.cancel()

    run(main, seed=1)


def test_given_a_leader_that_answers_when_time_passes_then_the_lease_is_kept() -> None:
    async def scenario(at: Scene) -> None:
        for _ in range(10):
            await at.wait(LEASE_MS)
            at.holder.check()

        times = [ms for ms, _ in at.leader.acknowledgements]
        gaps = [later - ms for ms, later in pairwise(times)]
        assert max(gaps) <= ACKNOWLEDGE_MS <= LEASE_MS // 3
        assert len(at.leader.registrations) == 1

    play(scenario)


@pytest.mark.case("online 79")
def test_given_a_first_snapshot_that_takes_longer_than_a_lease_then_it_registers_behind_it() -> (
    None
):
    async def scenario(at: Scene) -> None:
        at.catalog.take(SnapshotLine(version=1, tables=(), is_last=False))
        await at.wait(4 * LEASE_MS)
        before = len(at.leader.registrations)
        at.catalog.take(SnapshotLine(version=1, tables=(feed_table(),), is_last=True))
        await at.wait(LEASE_MS)

        assert (before, len(at.leader.registrations)) == (0, 1)
        assert at.reloads == []
        at.holder.check()

    play(scenario, has_catalog=False)


def test_given_a_version_that_was_applied_when_it_changes_a_table_then_it_is_told_at_once() -> None:
    async def scenario(at: Scene) -> None:
        at.apply(5)
        await at.wait(1)

        assert at.told[-1] == 5

    play(scenario)


def test_given_a_pin_when_it_is_of_an_older_version_and_let_go_then_it_is_told_at_once() -> None:
    async def scenario(at: Scene) -> None:
        transaction = at.transactions.begin(at.clock.mono_ms())
        at.transactions.bind(transaction, TABLE_ID, 1)
        at.apply(2)
        await at.wait(10)
        (pin,) = at.leader.acknowledgements[-1][1].pinned
        before = len(at.told)
        at.transactions.end(transaction)
        await at.wait(1)

        assert (pin.schema_version, pin.transaction) == (1, transaction.id)
        assert len(at.told) == before + 1
        assert at.leader.acknowledgements[-1][1].pinned == ()

    play(scenario)


def test_given_a_pin_of_the_newest_version_when_let_go_then_nobody_is_told() -> None:
    async def scenario(at: Scene) -> None:
        before = len(at.told)
        with at.transactions.running(at.clock.mono_ms()) as transaction:
            at.transactions.bind(transaction, TABLE_ID, 1)
            await at.wait(3_000)
            pinned = [request.pinned for _, request in at.leader.acknowledgements[before:]]
        before = len(at.told)
        await at.wait(1)

        assert pinned
        assert not any(pinned)
        assert len(at.told) == before

    play(scenario)


@pytest.mark.case("online 4")
def test_given_a_leader_that_is_silent_when_the_lease_ends_then_it_is_over_and_stays_over() -> None:
    async def scenario(at: Scene) -> None:
        at.leader.fault = SILENT
        await at.holder.until_over()
        over_ms = at.clock.mono_ms()
        at.leader.fault = None
        await at.wait(LEASE_MS)

        assert over_ms < LEASE_MS, "by its own clock, before anybody else's"
        assert at.reloads, "it tried to begin anew"
        assert at.holder.is_over
        with pytest.raises(Unavailable):
            at.holder.check()

    play(scenario)


def test_given_a_leader_that_comes_back_near_the_end_when_registered_then_it_goes_on() -> None:
    async def scenario(at: Scene) -> None:
        at.leader.fault = SILENT
        await at.wait(LEASE_MS * 9 // 10)
        with pytest.raises(Unavailable, match="reads the catalog"):  # its pins are being told
            at.holder.check()
        at.leader.fault = None
        await at.wait(LEASE_MS)
        at.holder.check()

        first, second = at.leader.registrations
        assert first.incarnation != second.incarnation
        assert at.reloads

    play(scenario)


@pytest.mark.case("online 7")
def test_given_a_catalog_that_cannot_be_read_when_the_lease_ends_then_over_and_signed_off() -> None:
    async def scenario(at: Scene) -> None:
        at.feed.can = False
        at.leader.version = 9
        await at.holder.until_over()
        with pytest.raises(Unavailable):
            at.holder.check()
        await at.holder.sign_off()

        assert len(at.leader.registrations) == 1
        assert at.clock.mono_ms() <= 2 * LEASE_MS
        assert len(at.reloads) == 2, "once while the lease is held, and once to begin anew"
        assert at.leader.signed_off == [at.leader.registrations[0].incarnation]

    play(scenario)


def test_given_an_incarnation_that_is_not_known_when_told_so_then_another_is_registered() -> None:
    async def scenario(at: Scene) -> None:
        transaction = at.transactions.begin(at.clock.mono_ms())
        at.transactions.bind(transaction, TABLE_ID, 1)
        at.leader.fault = NotFound(what="holder", name="fe-1")
        await at.wait(ACKNOWLEDGE_MS)
        at.leader.fault = None
        await at.wait(LEASE_MS)

        assert len(at.leader.registrations) == 2
        assert [pin.transaction for pin in at.leader.registrations[1].pinned] == [transaction.id]

    play(scenario)


def test_given_a_catalog_that_stands_still_when_acknowledged_then_it_renews_nothing() -> None:
    """Others would wait for ever for a holder that is alive and never learns."""

    async def scenario(at: Scene) -> None:
        at.leader.version = 9
        await at.wait(LEASE_MS)

        assert len(at.leader.registrations) == 2
        assert at.reloads
        with pytest.raises(Unavailable, match="reads the catalog"):
            at.holder.check()
        at.apply(9)
        at.holder.check()

    play(scenario)


@pytest.mark.case("catalog 135", "catalog 137")
def test_given_a_table_made_just_now_when_it_is_not_known_then_its_version_is_waited_for() -> None:
    async def scenario(at: Scene) -> None:
        at.leader.version = 2
        waiting = asyncio.get_running_loop().create_future()

        async def wait() -> None:
            await at.holder.newest()
            waiting.set_result(at.catalog.version)

        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            await at.wait(50)
            early = waiting.done()
            at.apply(2)

        assert (early, waiting.result()) == (False, 2)

    play(scenario)


@pytest.mark.case("online 7")
def test_given_a_catalog_that_stands_still_when_it_is_read_anew_then_the_lease_goes_on() -> None:
    async def scenario(at: Scene) -> None:
        await at.wait(LEASE_MS)
        at.leader.version = 2
        await at.wait(3 * ACKNOWLEDGE_MS)
        reloads = len(at.reloads)
        at.apply(2)
        await at.wait(LEASE_MS)

        at.holder.check()
        assert (reloads, len(at.reloads), len(at.leader.registrations)) == (1, 1, 1)

    play(scenario)


@pytest.mark.parametrize("code", ["wrong-cluster", "stale-incarnation"])
def test_given_another_cluster_or_process_when_told_so_then_it_must_never_serve(code: str) -> None:
    async def scenario(at: Scene) -> None:
        at.leader.fault = Conflict(code)
        await asyncio.wait([at.task])

        with pytest.raises(Conflict, match=code):
            at.task.result()

    play(scenario)


def test_given_a_frontend_that_ends_when_it_signs_off_then_its_incarnation_is_named() -> None:
    async def scenario(at: Scene) -> None:
        await at.holder.sign_off()
        faults: list[MetaError] = [NotFound(what="holder", name="fe-1"), SILENT]
        for fault in faults:
            at.leader.fault = fault
            await at.holder.sign_off()

        assert at.leader.signed_off == [at.leader.registrations[0].incarnation]

    play(scenario)


def test_given_a_registration_without_an_answer_when_it_ends_then_what_there_may_be_goes() -> None:
    async def scenario(at: Scene) -> None:
        at.leader.fault = SILENT
        await at.holder.until_over()
        at.leader.fault, at.leader.incarnation = None, at.leader.registrations[0].incarnation
        await at.holder.sign_off()

        assert at.leader.signed_off == [at.leader.incarnation]

    play(scenario)
