"""The tables that change on a running server are packed: it holds few of them decoded."""

import pytest

from keys.catalog import follower as kept_by
from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower, unpacked_by
from keys.catalog.log.handlers import DONE
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.log import RouteChanged, TableAltered, TableCreated, TableDropped
from keys.store.memory import MemoryKv
from tests.keys.catalog.logs import DEADLINE_MS, World, check, first_update, update
from tests.keys.catalog.snapshots import plain, restored
from tests.procedures.harness.tables import table_info, table_route
from tests.sim.loop import SimClock, SimLoop, run

TABLE_WEIGHT = 1 + 2 + 1  # the entry, the columns and the region of a table of `table_info`


def following(loop: SimLoop) -> Follower:
    clock = SimClock(loop)
    follower = Follower(MemoryKv(clock), clock, deadline_ms=DEADLINE_MS)
    loop.spawn("packing", follower.keep_packed())
    follower.log.offer(first_update(), 1)
    return follower


def unpacked(catalog: Catalog) -> int:
    changes = catalog.tables.changes.values()
    return sum(isinstance(source, CatalogTable) for source in changes)


def created(number: int) -> TableCreated:
    info = table_info(1024 + number, f"t{number}", 2)
    return TableCreated(info=info, route=table_route(info.table_id, ("dn-1",)))


def test_given_many_changes_when_a_server_runs_then_it_holds_no_more_than_the_bound_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_by, "UNPACKED_MAX", 10 * TABLE_WEIGHT)

    async def main(loop: SimLoop) -> None:
        follower, clock = following(loop), SimClock(loop)
        live = Catalog().apply(first_update(), 1)
        for version in range(2, 300):
            new = update(version, created(version))
            live = live.apply(new, version)
            follower.log.offer(new, version)
            await clock.sleep_ms(1)
            assert unpacked(follower.catalog) < 10

        assert plain(follower.catalog) == plain(live)
        assert follower.at(299) is follower.catalog
        assert plain(follower.catalog) == plain(restored(live))

    run(main, 1)


@pytest.mark.parametrize("seed", range(4))
def test_given_changes_while_tables_are_packed_then_every_version_is_as_the_log_says(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(kept_by, "UNPACKED_MAX", 12)

    async def main(loop: SimLoop) -> None:
        follower, clock, world = following(loop), SimClock(loop), World(seed)
        live = [Catalog().apply(first_update(), 1)]
        for version in range(2, 150):
            new = update(version, world.entry())
            live.append(live[-1].apply(new, version))
            follower.log.offer(new, version)
            if version % 3 == 0:
                await clock.sleep_ms(0)

        for catalog in live:
            kept = follower.at(catalog.version)
            assert kept is not None
            assert plain(kept) == plain(catalog)
        check(follower.catalog, world)

    run(main, 1)


def test_given_a_version_that_does_not_count_yet_when_tables_are_packed_then_it_counts_packed() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        clock, ended = SimClock(loop), loop.create_future()
        follower = Follower(MemoryKv(clock), clock, deadline_ms=DEADLINE_MS)
        follower.log.register_update_handler(
            "held", lambda event, at_ms, revision: ended if event.version > 1 else DONE
        )
        follower.log.offer(first_update(), 1)
        follower.log.offer(update(2, created(1)), 2)

        await follower.pack()

        assert follower.catalog.version == 1
        loop.spawn("drain", follower.log._settle())
        ended.set_result(None)
        catalog = await follower.wait_for(2, deadline_ms=DEADLINE_MS)
        assert (len(catalog.tables), unpacked(catalog)) == (1, 0)

    run(main, 1)


@pytest.mark.parametrize("seed", range(8))
def test_given_a_version_that_is_applied_in_turns_when_tables_are_packed_then_it_counts_packed(
    seed: int,
) -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        follower = Follower(MemoryKv(clock), clock, deadline_ms=DEADLINE_MS, entries_at_once=1)
        follower.log.offer(update(1, *first_update().entries), 1)
        await follower.log._settle()
        many = update(2, *(created(number) for number in range(80)))
        live = follower.catalog.apply(many, 2).apply(update(3, *map(created, range(80, 160))), 3)
        follower.log.offer(many, 2)
        await follower.log._settle()

        follower.log.offer(update(3, *map(created, range(80, 160))), 3)
        packing = loop.spawn("packing", follower.pack())
        await follower.log._settle()
        await packing

        assert plain(follower.catalog) == plain(live)
        assert unpacked(follower.catalog) == 80, "those that came meanwhile"

    run(main, seed)


def test_given_large_versions_when_they_are_many_then_fewer_are_kept_unless_a_reader_holds_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_by, "KEPT_MAX", 100 * TABLE_WEIGHT)

    async def main(loop: SimLoop) -> None:
        follower = following(loop)
        for version in range(2, 20):
            made = (created(100 * version + number) for number in range(30))
            follower.log.offer(update(version, *made), version)
            await follower.log._settle()
        assert follower.oldest_version == 17
        assert follower.update(16) is None
        assert follower.update(17) is not None

        with follower.hold(17):
            for version in range(20, 30):
                made = (created(100 * version + number) for number in range(30))
                follower.log.offer(update(version, *made), version)
                await follower.log._settle()
            assert follower.oldest_version == 17

    run(main, 1)


def test_given_any_change_of_a_table_then_it_weighs_what_is_held_of_it() -> None:
    catalog = Catalog().apply(first_update(), 1).apply(update(2, created(1)), 2)
    table = catalog.tables[1025]
    moved = table.route.region_routes[0].model_copy(update={"epoch": 2})
    entries = (
        TableAltered(info=table.info.model_copy(update={"version": 2})),
        RouteChanged(table_id=1025, version=2, regions=(moved,)),
        TableDropped(table_id=1025, dropped_at_ms=1, dropped_by="p"),
    )

    for entry in entries:
        new = update(3, entry)
        assert unpacked_by(new, catalog.apply(new, 3).tables) == TABLE_WEIGHT
    assert unpacked_by(first_update(), catalog.tables) == 2
