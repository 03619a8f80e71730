"""The stream of the catalog: what its lines add up to is the catalog, wherever a reader begins."""

from collections import Counter
from random import Random

import pytest

from keys.catalog import follower
from keys.catalog.follower import VERSIONS_KEPT
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.log import CatalogDropping, SchemaDropping, TableAltered, TableCreated, TableRenamed
from metasrv.service.state.feed_lines import PART_TABLES
from metasrv.service.state.state import ServerState
from metasrv_base.elements.states import ElementState
from metasrv_base.feed.catalog_replica import CatalogReplica, FeedReader
from metasrv_base.wire.frontend.feed import ParsedPart, Update
from tests.keys.catalog.logs import World, update
from tests.metasrv.holders.reader import Reader, mirror_of, state, whole
from tests.procedures.harness.tables import table_info, table_route


def same(mirror: CatalogReplica, other: CatalogReplica) -> bool:
    return (mirror.version, mirror.tables, mirror.names) == (
        other.version,
        other.tables,
        other.names,
    )


def grow(one: ServerState, world: World, versions: int) -> None:
    for _ in range(versions):
        version = one.follower.catalog.version + 1
        one.follower.log.offer(update(version, world.entry()), version)


def make(one: ServerState, tables: int) -> None:
    for number in range(tables):
        table_id, version = 1024 + number, one.follower.catalog.version + 1
        info, route = table_info(table_id, f"t{number}", 1), table_route(table_id, ("dn-1",))
        one.follower.log.offer(update(version, TableCreated(info=info, route=route)), version)


def alter(one: ServerState, times: int) -> int:
    """The first table, again and again; the version it comes to."""
    for number in range(times):
        version = one.follower.catalog.version + 1
        altered = table_info(1024, "t0", 1).model_copy(update={"version": number + 2})
        one.follower.log.offer(update(version, TableAltered(info=altered)), version)
    return version


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.case("online 13")
@pytest.mark.case("catalog 148")
async def test_given_any_log_when_a_reader_follows_it_then_it_has_what_a_new_one_is_given(
    seed: int,
) -> None:
    one, world, draw = state(), World(seed), Random(seed)
    reader = Reader.of(one)
    some = frozenset(draw.sample(range(1024, 1040), 6))
    of_some = Reader.of(one, wanted=some)

    for _ in range(12):
        grow(one, world, draw.randrange(1, 30))
        version = one.follower.catalog.version

        assert same(await reader.at(version), whole(one.follower))
        assert same(await of_some.at(version), whole(one.follower, some))
        if draw.random() < 0.3:
            reader = reader.again(one)

    follows = [line.version for line in of_some.told if isinstance(line, Update)]
    assert follows == list(range(follows[0], follows[-1] + 1)), "each version is told, in order"


async def test_given_a_reader_that_was_away_when_it_comes_back_then_it_is_told_what_it_missed() -> (
    None
):
    one, world = state(), World(1)
    reader = Reader.of(one)
    grow(one, world, 5)
    await reader.at(6)

    grow(one, world, 7)
    again = reader.again(one)
    await again.at(13)

    assert again.types == ["update"] * 7
    assert same(again.mirror, whole(one.follower))


@pytest.mark.slow
@pytest.mark.case("online 15")
async def test_given_a_reader_that_falls_far_behind_then_a_snapshot_and_no_queue() -> None:
    one = state()
    make(one, 1)
    reader = Reader.of(one)
    await reader.at(2)
    stands = await reader.until("alive")

    await reader.at(alter(one, 3 * VERSIONS_KEPT))

    assert stands.type == "alive"
    assert reader.types[-1] == "snapshot"
    assert len(reader.told) < 6
    assert same(reader.mirror, whole(one.follower))


@pytest.mark.slow
@pytest.mark.case("online 79")
async def test_given_many_versions_while_a_snapshot_is_read_then_they_follow_it() -> None:
    one = state()
    make(one, 100)
    reader = Reader.of(one)
    await reader.next()

    await reader.at(alter(one, 3 * VERSIONS_KEPT))
    await reader.until("alive")
    behind = one.follower.at(101)
    alter(one, 1)

    assert Counter(reader.types) == {"snapshot": 2, "update": 3 * VERSIONS_KEPT, "alive": 1}
    assert same(await reader.at(one.follower.catalog.version), whole(one.follower))
    assert behind is None, "it was kept for no longer than it took"


async def test_given_more_versions_than_are_ever_kept_when_a_snapshot_is_read_then_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "HELD_MAX", 2 * VERSIONS_KEPT)
    one = state()
    make(one, 100)
    reader = Reader.of(one)
    await reader.next()

    await reader.at(alter(one, 3 * VERSIONS_KEPT))

    assert Counter(reader.types) == {"snapshot": 4}
    assert same(reader.mirror, whole(one.follower))


async def test_given_a_version_that_is_kept_no_more_when_asked_from_it_then_a_snapshot() -> None:
    one = state()
    make(one, 1)
    version = alter(one, VERSIONS_KEPT)

    late, just = Reader.of(one, start=1), Reader.of(one, start=version - VERSIONS_KEPT + 1)

    assert isinstance(await late.next(), ParsedPart)
    just.reading = FeedReader(mirror_of_version(one, version - VERSIONS_KEPT + 1))
    assert isinstance(await just.next(), Update)


def mirror_of_version(one: ServerState, version: int) -> CatalogReplica:
    catalog = one.follower.at(version)
    assert catalog is not None
    return mirror_of(catalog)


async def test_given_a_thousand_tables_then_the_snapshot_comes_in_parts_and_is_whole() -> None:
    one = state()
    make(one, 1_000)
    reader = Reader.of(one)

    mirror = await reader.at(1_001)

    assert len(mirror.tables) == 1_000
    parts = [line for line in reader.told if isinstance(line, ParsedPart)]
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert max(len(part.tables) for part in parts) == PART_TABLES
    found = mirror.find("main", "public", "t999")
    assert found is not None
    assert found.id == 2_023


async def test_given_exactly_full_parts_then_the_last_one_is_empty() -> None:
    one = state()
    make(one, PART_TABLES)
    reader = Reader.of(one)

    mirror = await reader.at(PART_TABLES + 1)

    assert len(mirror.tables) == PART_TABLES
    assert reader.types == ["snapshot", "snapshot"]


async def test_given_names_that_are_exchanged_then_each_finds_the_other() -> None:
    one = state()
    make(one, 2)
    reader = Reader.of(one)
    await reader.at(3)

    away = TableRenamed(info=table_info(1024, "x", 1))
    back = (
        TableRenamed(info=table_info(1025, "t0", 1)),
        TableRenamed(info=table_info(1024, "t1", 1)),
    )
    one.follower.log.offer(update(4, away), 4)
    one.follower.log.offer(update(5, *back), 5)
    mirror = await reader.at(5)

    assert {name[2]: table for name, table in mirror.names.items()} == {"t0": 1025, "t1": 1024}
    assert same(mirror, whole(one.follower))


async def test_given_a_schema_or_catalog_that_leaves_then_nobody_finds_its_tables_at_once() -> None:
    info = CatalogInfo(catalog_id=1, name="main", created_at_ms=0)
    schema = SchemaInfo(schema_id=1, catalog="main", name="public", created_at_ms=0)
    for entry in (SchemaDropping(info=schema), CatalogDropping(info=info)):
        one = state()
        make(one, 3)
        reader = Reader.of(one)
        await reader.at(4)

        one.follower.log.offer(update(5, entry), 5)
        mirror = await reader.at(5)

        assert (mirror.version, dict(mirror.names)) == (5, {})
        assert {table.state for table in mirror.tables.values()} == {ElementState.WRITE_ONLY}
        assert same(mirror, whole(one.follower))


async def test_given_a_reader_ahead_of_this_server_then_it_is_told_nothing_that_it_has() -> None:
    one, world = state(), World(2)
    grow(one, world, 3)
    ahead = Reader.of(one, start=6)

    first = await ahead.next()
    grow(one, world, 3)
    ahead.reading = FeedReader(mirror_of_version(one, 6))
    grow(one, world, 1)
    second = await ahead.next()

    assert (first.type, second.type) == ("alive", "update")
    assert isinstance(second, Update)
    assert second.version == 7
