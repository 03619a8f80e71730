"""The loop of the supervisor: its own waiting for the store is no stall, and delays nobody."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from immutables import Map
from structlog.testing import capture_logs

from keys.catalog.catalog import Catalog
from keys.catalog.tables.heads import HeldRegion
from keys.model.log import TableCreated
from keys.model.tables import RegionState
from metasrv.leadership.lost_regions import REGIONS_MAX
from metasrv.leadership.supervisor import AGAIN_MS, Supervisor
from metasrv.nodes.detector import PhiConfig, PhiDetector
from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv.nodes.status import HeldBack, NodeEntry, NodeStatus, status_of
from metasrv.settings.tunables import Maintenance
from metasrv_base.wire.node.nodes import RegionColumns, RegionStat
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from tests.metasrv.nodes.catalogs import catalog_of
from tests.metasrv.nodes.samples import node
from tests.procedures.harness.copies.copied_tables import IN_SYNC, copied_info, copied_route
from tests.procedures.harness.tables import region_ids, table_info, table_route
from tests.sim.loop import SimClock, SimLoop, run

NODES = tuple(f"dn-{number}" for number in range(1, 5))
HELD = HeldRegion(0, 1, RegionState.OPEN, is_leader=True)
BEAT_MS = 2_000
FOUND_MS_MAX = 8_000  # of a death, at a beat of two seconds
HOUR_MS = 3_600_000


@dataclass
class Book:
    """As much of a NodeBook as the supervisor looks at."""

    clock: SimClock
    leases: Any = field(default_factory=lambda: SimpleNamespace(quiet_until_ms=0))
    held: dict[str, HeldBack] = field(default_factory=dict)
    alive: set[str] = field(default_factory=lambda: set(NODES))

    def __post_init__(self) -> None:
        now = self.clock.mono_ms()
        self.entries = {n: NodeEntry(node(n), PhiDetector(PhiConfig(), now)) for n in NODES}

    def statuses(self) -> tuple[NodeStatus, ...]:
        now = self.clock.mono_ms()
        return tuple(status_of(entry, 0, now) for entry in self.entries.values())

    def forgive(self, stalled_ms: int) -> None:
        now = self.clock.mono_ms()
        for entry in self.entries.values():
            entry.detector.forgive(stalled_ms, now)

    async def beat(self) -> None:
        while True:
            await self.clock.sleep_ms(BEAT_MS)
            for name in self.alive:
                self.entries[name].detector.heard(self.clock.mono_ms())


@dataclass
class SlowManager:
    """Each submission takes as long as the store does."""

    clock: SimClock
    takes_ms: int
    began: dict[str, int] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    moved: list[FailoverTable] = field(default_factory=list)
    """Failovers of tables; none of them ends."""

    async def submit(self, kind: Any, state: Any, attempt: Any) -> None:
        if kind is FAILOVER_TABLE:
            self.moved.append(state)
            return
        assert state.node not in self.began, "a second failover of a node"
        self.began[state.node] = self.clock.mono_ms()
        await self.clock.sleep_ms(self.takes_ms)
        self.stored.add(state.node)

    def living(self) -> tuple[Any, ...]:
        tables = [
            _entry(str(move.table_id), "failover_table", move.model_dump(mode="json"))
            for move in self.moved
        ]
        entries = (*(_entry(name, "failover_node") for name in self.stored), *tables)
        return tuple((str(number), entry) for number, entry in enumerate(entries))


def _entry(name: str, kind: str, state: Mapping[str, Any] | None = None) -> Any:
    record = SimpleNamespace(kind=kind, resource=SimpleNamespace(id=name), state=state or {})
    return SimpleNamespace(held=SimpleNamespace(record=record))


@dataclass
class Scene:
    loop: SimLoop
    takes_ms: int = 0
    maintenance: Maintenance | None = None
    leaders: tuple[str, ...] = NODES
    """Nodes that lead a region; the others have copies only."""
    tables: Catalog = field(default_factory=Catalog)

    def __post_init__(self) -> None:
        self.clock = SimClock(self.loop)
        self.book, self.manager = Book(self.clock), SlowManager(self.clock, self.takes_ms)
        held = Map({name: Map({1024: (HELD,)}) for name in NODES})
        catalog = replace(self.tables, nodes=held, led=Map(dict.fromkeys(self.leaders, 1)))
        supervisor = Supervisor(
            self.clock,
            cast(Any, SimpleNamespace(procedure_id=lambda: "p")),
            cast(Any, SimpleNamespace(catalog=catalog)),
            cast(Any, self.book),
            cast(Any, SimpleNamespace(maintenance=self.maintenance)),
            cast(Any, self.manager),
        )
        self.tasks = [
            self.loop.spawn("server", supervisor.run()),
            self.loop.spawn("nodes", self.book.beat()),
        ]

    async def settle(self) -> None:
        await self.clock.sleep_ms(60_000)

    def kill(self, name: str) -> int:
        self.book.alive.discard(name)
        return self.clock.mono_ms()


def test_given_a_node_that_has_copies_and_leads_nothing_when_it_dies_then_no_failover() -> None:
    async def main(loop: SimLoop) -> None:
        at = Scene(loop, leaders=("dn-2",))
        await at.settle()
        at.kill("dn-1")
        await at.clock.sleep_ms(60_000)

        assert at.manager.began == {}

    run(main, 1)


@pytest.mark.parametrize("takes_ms", [5, 5_000, 20_000, HOUR_MS])
def test_given_a_slow_store_when_a_second_node_dies_then_it_is_found_as_soon_as_the_first(
    takes_ms: int,
) -> None:
    async def main(loop: SimLoop) -> None:
        at = Scene(loop, takes_ms)
        await at.settle()
        first = at.kill("dn-1")
        await at.clock.sleep_ms(7_000)
        second = at.kill("dn-2")
        await at.clock.sleep_ms(takes_ms + 60_000)

        assert at.manager.began["dn-1"] - first < FOUND_MS_MAX
        assert at.manager.began["dn-2"] - second < FOUND_MS_MAX
        assert set(at.manager.began) == {"dn-1", "dn-2"}

    with capture_logs() as logs:
        run(main, 1)
    assert [line for line in logs if line["event"] == "server_stalled"] == []


def test_given_a_server_that_stood_still_for_a_minute_when_it_runs_again_then_no_failover() -> None:
    async def main(loop: SimLoop) -> None:
        at = Scene(loop)
        await at.settle()
        loop.pause("server", 60_000)
        alive, at.book.alive = at.book.alive, set()  # nobody is heard meanwhile
        await at.clock.sleep_ms(60_000)
        at.book.alive = alive
        await at.settle()

        assert at.manager.began == {}

    run(main, 1)


def test_given_three_of_four_nodes_cut_off_then_it_is_shown_since_when_and_nothing_begins() -> None:
    async def main(loop: SimLoop) -> None:
        at = Scene(loop)
        await at.settle()
        for name in ("dn-1", "dn-2", "dn-3"):
            at.kill(name)
        await at.clock.sleep_ms(10_000)
        since = {name: one.since_ms for name, one in at.book.held.items()}
        await at.settle()

        assert at.manager.began == {}
        assert {name: one.since_ms for name, one in at.book.held.items()} == since
        assert set(since) == {"dn-1", "dn-2", "dn-3"}

        at.book.alive.add("dn-3")
        await at.clock.sleep_ms(10_000)
        assert at.book.held == {}
        assert set(at.manager.began) == {"dn-1", "dn-2"}

    run(main, 1)


def test_given_a_leader_that_started_again_when_its_failover_waits_then_there_is_one() -> None:
    route = table_route(1024, ("dn-1",))
    tables = catalog_of(TableCreated(info=table_info(1024, "t", 1), route=route))

    async def main(loop: SimLoop) -> None:
        at = Scene(loop, tables=tables)
        at.book.entries["dn-1"].restarted = {region_ids(1024, 1)[0]: 1}
        await at.clock.sleep_ms(10 * AGAIN_MS)

        assert [move.region_ids for move in at.manager.moved] == [region_ids(1024, 1)]
        at.manager.moved.clear()  # it is over, and has changed nothing
        await at.clock.sleep_ms(AGAIN_MS)
        assert [move.region_ids for move in at.manager.moved] == [region_ids(1024, 1)]

    run(main, 1)


def test_given_a_lost_region_whose_failover_never_ends_when_another_needs_one_then_it_begins() -> (
    None
):
    """Both are of one table; that of the lost region waits for its storage."""
    lost, other = region_ids(1024, 2)
    route = table_route(1024, ("dn-2", "dn-1"))
    tables = catalog_of(TableCreated(info=table_info(1024, "t", 2), route=route))

    async def main(loop: SimLoop) -> None:
        at = Scene(loop, tables=tables)
        at.manager.moved.append(
            FailoverTable(
                table_id=1024, name="t", source="dn-2", region_ids=(lost,), reason="no heartbeat"
            )
        )
        at.book.entries["dn-1"].restarted = {other: 1}
        await at.clock.sleep_ms(AGAIN_MS)

        assert [move.region_ids for move in at.manager.moved] == [(lost,), (other,)]

    run(main, 1)


def test_given_more_lost_regions_without_copies_than_a_look_judges_then_others_are_found() -> None:
    """A disk is gone. What has no copy is lost for ever; what has one is led by it."""
    alone = region_ids(1024, REGIONS_MAX + 1)
    (copied,) = region_ids(1025, 1)
    tables = catalog_of(
        TableCreated(
            info=table_info(1024, "t", len(alone)), route=table_route(1024, ("dn-1",) * len(alone))
        ),
        TableCreated(
            info=copied_info(1025, "u", 1),
            route=copied_route(1025, ("dn-1",), ((("dn-2", IN_SYNC),),)),
        ),
    )
    stat = partial(RegionStat, state="lost", rows=0, bytes=0, wal_bytes=0, files=0, version=0)
    stats = [stat(region_id=region, epoch=1) for region in (*alone, copied)]

    async def main(loop: SimLoop) -> None:
        at = Scene(loop, tables=tables)
        at.book.entries["dn-1"].takes(RegionReport(RegionColumns.of(stats)))
        await at.clock.sleep_ms(AGAIN_MS)

        assert [move.region_ids for move in at.manager.moved] == [(copied,)]

    run(main, 1)


def test_given_maintenance_that_ends_when_a_node_dies_then_it_says_until_when() -> None:
    async def main(loop: SimLoop) -> None:
        at = Scene(loop, maintenance=Maintenance(enabled=True, expires_at_ms=99))
        await at.settle()
        at.kill("dn-1")
        await at.settle()

        held = at.book.held["dn-1"]
        assert (held.hold.reason, held.hold.until_ms) == ("maintenance", 99)
        assert at.manager.began == {}

    run(main, 1)
