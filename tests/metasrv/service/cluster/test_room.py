"""Tables that no other node may take: as a scan of every table finds them, and in short turns."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map

from keys.catalog.catalog import Catalog
from keys.catalog.parts.placing import Placing
from keys.catalog.tables.heads import HeldRegion
from keys.model.placing.placements import (
    DEFAULT_PROFILE,
    NodeFilter,
    PlacementInfo,
    StorageProfile,
    default_placement,
)
from keys.model.tables import RegionState
from metasrv.service.cluster import room as room_by
from metasrv.service.cluster.room import Room, must_take_all
from metasrv_base.concurrency.turns import TURN, at_once
from metasrv_base.errors import Conflict
from procedures.ports import NodeView
from tests.keys.catalog.logs import World, first_update, update

NODES = ("dn-1", "dn-2", "dn-3")


def view(node: str, zone: str) -> NodeView:
    return NodeView(node, zone, f"/disks/{node}", alive=True, regions=0, disk_free_bytes=1 << 40)


VIEWS = (view("dn-1", "a"), view("dn-2", "b"), view("dn-3", "b"))


def closed(catalog: Catalog) -> Catalog:
    """The catalog with filters that let no node but those of zone `a` take regions of the default
    placement and of those with an even id."""
    placements = catalog.placing.placements
    for name, info in placements.items():
        zones = ("a",) if info.placement_id % 2 == 0 else ()
        new = info.model_copy(update={"node_filter": NodeFilter(zones=zones)})
        placements = placements.set(name, new)
    default = default_placement(0).model_copy(update={"node_filter": NodeFilter(zones=("a",))})
    placements = placements.set(default.name, default)
    names = Map({info.placement_id: name for name, info in placements.items()})
    placing = replace(catalog.placing, placements=placements, placement_names=names)
    return replace(catalog, placing=placing)


def scanned(catalog: Catalog, source: str) -> dict[str, set[str]]:
    """Placement -> full names of the tables in it that would stay, by a look at every table."""
    stuck: dict[str, set[str]] = {}
    for table in catalog.tables.values():
        if table.dropped_at_ms is not None or not catalog.shows(table):
            continue
        placement = catalog.placing.placement_of(table.info)
        profiles = {profile.name for profile in placement.storage_profiles}
        is_closed = "a" in placement.node_filter.zones
        is_led = any(
            region.leader == source and len(region.in_sync) == 1
            for region in table.route.region_routes
        )
        if is_closed and is_led and (table.info.storage_profile or DEFAULT_PROFILE) in profiles:
            stuck.setdefault(placement.name, set()).add(table.info.full_name)
    return stuck


@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 120), source=st.sampled_from(NODES))
@settings(max_examples=60, deadline=None)
@pytest.mark.slow
def test_given_any_log_then_the_tables_that_are_told_are_those_that_a_scan_finds(
    seed: int, count: int, source: str
) -> None:
    world, catalog = World(seed), Catalog().apply(first_update(), 1)
    for version in range(2, count + 2):
        catalog = catalog.apply(update(version, world.entry()), version)
    catalog = closed(catalog)
    views = tuple(view(node, "a" if node == source else "b") for node in NODES)

    told = dict(told_by(Room(views, source), catalog))
    stuck = scanned(catalog, source)

    assert len(told) == min(len(stuck), room_by.TOLD_MAX)
    assert all(name in stuck[placement] for placement, name in told.items())


def told_by(room: Room, catalog: Catalog) -> Iterator[tuple[str, str]]:
    try:
        at_once(must_take_all(room, catalog))
    except Conflict as error:
        facts: Mapping[str, Any] = error.facts
        yield from zip(facts["placements"], facts["tables"], strict=True)


def test_given_a_node_with_many_tables_of_many_placements_then_a_turn_looks_at_few() -> None:
    placements, each = 20, 1_000
    infos = [default_placement(0)]
    infos += [
        PlacementInfo(
            placement_id=2_000 + number,
            name=f"p{number}",
            replicas=1,
            partitions=1,
            storage_profiles=(StorageProfile(name="default", engine="lsm", options={}),),
            node_filter=NodeFilter(zones=("a",)),
            comment=None,
            created_at_ms=0,
        )
        for number in range(placements)
    ]
    infos[0] = infos[0].model_copy(update={"node_filter": NodeFilter(zones=("a",))})
    follows = (HeldRegion(0, 1, RegionState.OPEN, is_leader=False),)
    tables = range(10_000, 10_000 + placements * each)
    placed = {
        2_000 + number: Map(dict.fromkeys(tables[number * each : (number + 1) * each], "default"))
        for number in range(placements)
    }
    placing = Placing(
        placements=Map({info.name: info for info in infos}),
        placement_names=Map({info.placement_id: info.name for info in infos}),
        placed=Map(placed),
    )
    catalog = Catalog(placing=placing, nodes=Map({"dn-1": Map(dict.fromkeys(tables, follows))}))

    turns = sum(1 for _ in must_take_all(Room(VIEWS, "dn-1"), catalog))

    assert turns > 2 * len(tables) / TURN
