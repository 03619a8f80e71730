"""Leaders that stand outside the preferred zones of their placement, and the switches they get."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from keys.catalog.catalog import Catalog
from keys.model.log import (
    Entry,
    PlacementAltered,
    PlacementCreated,
    RouteChanged,
    TableCreated,
    TablespaceCreated,
)
from keys.model.placing.placements import NodeFilter, PlacementInfo, StorageProfile
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import CopyRole, RegionRoute, RegionState
from metasrv.leadership.copies import zone_followers
from metasrv.leadership.copies.copy_survey import regions_of
from metasrv.leadership.copies.zone_followers import ZoneFacts, ZoneFollowers, preferred_zones
from metasrv_base.concurrency.turns import at_once
from procedures.kinds.failover.next_leader import led_by
from procedures.kinds.failover.switch_leader import SwitchLeader
from procedures.ports import NodeView
from procedures.steps.placing import zone_rank
from tests.metasrv.leadership.copies.copied_regions import IN_SYNC, LEARNER, applied, view
from tests.metasrv.nodes.catalogs import catalog_of
from tests.procedures.harness.copies.copied_tables import Copies, copied_info, copied_route

TABLE, PLAIN = 1024, 1025
FAST = PlacementInfo(
    format=3,
    placement_id=1030,
    name="fast",
    replicas=3,
    storage_profiles=(StorageProfile(name="default", engine="lsm"),),
    preferred_zones=("dn-3", "dn-2"),
    created_at_ms=0,
)
SPACE = TablespaceInfo(tablespace_id=1040, catalog="main", name="space", created_at_ms=0)
BOTH: Copies = (("dn-2", IN_SYNC), ("dn-3", IN_SYNC))
VIEWS = tuple(view(f"dn-{number}") for number in range(1, 5))
"""Each node is alone in a zone of its name."""


def placed(table_id: int, *copies: Copies, **fields: Any) -> TableCreated:
    """A table in the placement, of regions that dn-1 leads."""
    uses = {"placement_id": FAST.placement_id, "storage_profile": "default", **fields}
    info = copied_info(table_id, f"t{table_id}", len(copies), 3).model_copy(update=uses)
    return TableCreated(info=info, route=copied_route(table_id, ("dn-1",) * len(copies), copies))


def other(*copies: Copies) -> TableCreated:
    """A table in the default placement."""
    info = copied_info(PLAIN, "plain", len(copies), 3)
    return TableCreated(info=info, route=copied_route(PLAIN, ("dn-1",) * len(copies), copies))


def catalog(*entries: Entry) -> Catalog:
    return catalog_of(PlacementCreated(info=FAST), TablespaceCreated(info=SPACE), *entries)


def switched(
    of: Catalog,
    views: tuple[NodeView, ...] = VIEWS,
    followers: ZoneFollowers | None = None,
    **more: Any,
) -> list[SwitchLeader]:
    """One look. *more*: fields of ZoneFacts, and a `limit`."""
    limit = more.pop("limit", 99)
    facts = ZoneFacts({each.node_id: each for each in views}, **more)
    return list(at_once((followers or ZoneFollowers()).look(of, facts, limit)))


def targets(*looked: Any, **more: Any) -> list[str | None]:
    return [switch.to_node for switch in switched(*looked, **more)]


def changed(**facts: Any) -> tuple[NodeView, ...]:
    """The nodes, of which dn-3 has other facts."""
    return (*VIEWS[:2], replace(VIEWS[2], **facts), VIEWS[3])


def region_in(of: Catalog, number: int = 0) -> RegionRoute:
    return of.tables[TABLE].route.region_routes[number]


def with_region(of: Catalog, **update: Any) -> Catalog:
    """The first region of the table is another."""
    region = region_in(of).model_copy(update=update)
    version = of.tables[TABLE].route.version + 1
    return applied(of, RouteChanged(table_id=TABLE, version=version, regions=(region,)))


def test_given_leaders_elsewhere_then_each_is_switched_to_the_copy_in_the_best_zone() -> None:
    of = catalog(placed(TABLE, BOTH, (("dn-2", IN_SYNC),), (("dn-4", IN_SYNC),), ()), other(BOTH))

    first, second = switched(of)

    assert (first.region_id, first.to_node) == (region_in(of).region_id, "dn-3")
    assert (second.region_id, second.to_node) == (region_in(of, 1).region_id, "dn-2")
    assert (first.epoch, first.table_id) == (1, TABLE)
    assert first.reason == "zone dn-3 is preferred"


def test_given_the_default_placement_when_it_prefers_a_zone_then_its_tables_follow_alone() -> None:
    of = catalog(placed(TABLE, BOTH), other(BOTH))
    default = of.placing.default.model_copy(
        update={"format": 3, "preferred_zones": ("dn-2",), "version": 2}
    )
    of = applied(of, PlacementCreated(info=default))
    fast = FAST.model_copy(update={"preferred_zones": ()})

    assert targets(of) == ["dn-3", "dn-2"]
    assert targets(applied(of, PlacementAltered(info=fast))) == ["dn-2"]


@pytest.mark.parametrize(
    ("facts", "target"),
    [
        ({"alive": False}, "dn-2"),
        ({"answers": False}, "dn-2"),
        ({"cordoned": True}, "dn-2"),
        ({"zone": "dn-4"}, "dn-2"),
        ({"regions": 99}, "dn-3"),
    ],
)
def test_given_a_copy_whose_node_is_dead_or_cordoned_then_the_next_zone_leads(
    facts: Mapping[str, Any], target: str
) -> None:
    of = catalog(placed(TABLE, BOTH))

    assert targets(of, changed(**facts)) == [target]


def test_given_a_copy_that_may_not_lead_then_nothing_is_switched() -> None:
    only: Copies = (("dn-3", IN_SYNC), ("dn-4", IN_SYNC))
    of = catalog(placed(TABLE, only))
    region = region_in(of).region_id
    learner = catalog(placed(TABLE, (("dn-3", LEARNER),)))
    filtered = FAST.model_copy(update={"node_filter": NodeFilter(zones=("dn-1", "dn-4"))})

    assert targets(of) == ["dn-3"]
    assert targets(of, leaving=("dn-3",)) == [], "it is drained"
    assert targets(of, changed(cordoned=True)) == []
    assert targets(of, changed(answers=False)) == []
    assert targets(of, changed(lost={region: 1})) == []
    assert targets(of, busy=(region,)) == []
    assert targets(of, tried={region: "dn-3"}) == [], "it was switched there a moment ago"
    assert targets(of, tried={region: "dn-4"}) == ["dn-3"]
    assert targets(learner) == []
    assert targets(applied(of, PlacementAltered(info=filtered))) == [], "it is to move from there"
    assert targets(of, (*VIEWS[:2], VIEWS[3])) == [], "it is not registered"


def test_given_a_region_that_is_not_served_then_it_is_left_to_the_failover() -> None:
    of = catalog(placed(TABLE, BOTH))
    region = region_in(of).region_id

    assert targets(with_region(of, state=RegionState.OPENING)) == []
    assert targets(with_region(of, borrows=("/disks/dn-9/r",))) == []
    assert targets(with_region(of, unverified=True)) == []
    assert targets(of, (replace(VIEWS[0], alive=False), *VIEWS[1:])) == []
    assert targets(of, (replace(VIEWS[0], answers=False), *VIEWS[1:])) == [], "it holds no writes"
    assert targets(of, (replace(VIEWS[0], restarted={region: 1}), *VIEWS[1:])) == []
    assert targets(of, (replace(VIEWS[0], restarted={region: 0}), *VIEWS[1:])) == ["dn-3"]


def test_given_two_copies_in_the_best_zone_then_the_partition_group_chooses_and_moves_nobody() -> (
    None
):
    views = (*VIEWS[:2], replace(VIEWS[2], regions=5), replace(VIEWS[3], zone="dn-3"))
    space = {"tablespace_id": SPACE.tablespace_id}
    two: Copies = (("dn-3", IN_SYNC), ("dn-4", IN_SYNC))
    beside = placed(PLAIN, (("dn-1", IN_SYNC),), **space)
    led = copied_route(PLAIN, ("dn-3",), ((("dn-4", IN_SYNC),),))
    beside = beside.model_copy(update={"route": led})
    alone = catalog(placed(TABLE, two, **space))
    of = catalog(placed(TABLE, two, **space), beside)

    assert targets(alone, views) == ["dn-4"], "the least loaded"
    assert targets(of, views) == ["dn-3"], "beside its group"
    region = led_by(region_in(of), region_in(of).copies[1], former=IN_SYNC)
    assert targets(with_region(of, **dict(region)), views) == [], "the zone is the best already"


def test_given_a_limit_then_no_more_begin_at_once() -> None:
    of = catalog(placed(TABLE, *[BOTH] * 5), placed(PLAIN, *[BOTH] * 5))

    first = switched(of, limit=3)
    rest = switched(of, limit=3, busy=tuple(switch.region_id for switch in first))

    assert len({switch.region_id for switch in (*first, *rest)}) == 6


def test_given_tables_whose_leaders_are_well_placed_then_they_are_decoded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[int] = []

    def counting(of: Catalog, table_id: int) -> object:
        decoded.append(table_id)
        return regions_of(of, table_id)

    monkeypatch.setattr(zone_followers, "regions_of", counting)
    of = catalog(placed(TABLE, (("dn-4", IN_SYNC),)), other(BOTH))
    followers = ZoneFollowers()
    assert targets(of, followers=followers) == []
    assert targets(of, followers=followers) == []
    assert decoded == [TABLE], "neither again, nor a table of another placement"

    altered = FAST.model_copy(update={"preferred_zones": ("dn-4",), "version": 2})
    of = applied(of, PlacementAltered(info=altered))
    assert targets(of, followers=followers) == ["dn-4"], "the placement has other zones"
    assert targets(of, followers=followers) == ["dn-4"], "until it is there"
    better = led_by(region_in(of), region_in(of).copies[0], former=CopyRole.IN_SYNC)
    of = with_region(of, **{**dict(better), "state": RegionState.OPEN})
    assert targets(of, followers=followers) == []
    decoded.clear()
    assert targets(of, followers=followers) == []
    assert decoded == []
    moved = (replace(VIEWS[0], zone="dn-4"), *VIEWS[1:3], replace(VIEWS[3], zone="x"))
    assert targets(of, moved, followers=followers) == ["dn-1"], "the nodes stand in other zones"


def test_given_no_placement_with_zones_then_no_table_is_looked_at() -> None:
    of = catalog_of(other(BOTH))

    assert preferred_zones(of) == {}
    assert targets(of) == []


def test_given_any_region_when_switches_are_carried_out_then_the_best_zone_leads_for_good() -> None:
    """A leader moves at most once while nothing else changes."""
    for seed in range(300):
        draw = Random(seed)
        views = tuple(
            replace(each, zone=draw.choice("abc"), alive=draw.random() < 0.8) for each in VIEWS
        )
        holders = draw.sample(["dn-2", "dn-3", "dn-4"], draw.randint(0, 3))
        copies: Copies = tuple((name, draw.choice((IN_SYNC, LEARNER))) for name in holders)
        zones = tuple(draw.sample("abc", draw.randint(1, 2)))
        of = catalog(placed(TABLE, copies))
        of = applied(of, PlacementAltered(info=FAST.model_copy(update={"preferred_zones": zones})))
        before, followers = region_in(of), ZoneFollowers()

        due = switched(of, views, followers=followers)
        for switch in due:
            copy = next(each for each in before.copies if each.node == switch.to_node)
            new = led_by(before, copy, former=CopyRole.IN_SYNC)
            of = with_region(of, **{**dict(new), "state": RegionState.OPEN})

        assert switched(of, views, followers=followers) == [], seed
        by_id = {each.node_id: each for each in views}
        ranks = {name: zone_rank(by_id[name].zone, zones) for name in before.in_sync}
        able = [rank for name, rank in ranks.items() if by_id[name].alive]
        if by_id["dn-1"].alive:
            assert ranks[region_in(of).leader] == min(able), seed
        else:
            assert due == [], seed
