"""Regions that are led outside the preferred zones of their placement, as the catalog counts."""

from random import Random

from keys.catalog.catalog import Catalog
from keys.model.log import (
    PlacementAltered,
    PlacementCreated,
    RouteChanged,
    TableCreated,
    TableDropped,
)
from keys.model.placing.placements import PlacementInfo, StorageProfile
from metasrv.leadership.copies.zone_followers import led_outside, preferred_zones
from tests.metasrv.leadership.copies.copied_regions import applied
from tests.metasrv.nodes.catalogs import catalog_of
from tests.procedures.harness.tables import table_info, table_route

NODES = ("dn-1", "dn-2", "dn-3")
ZONES = {node: node for node in NODES}
"""Each node is alone in a zone of its name."""
DEFAULT = catalog_of().placing.default


def placement(number: int, *zones: str) -> PlacementInfo:
    return PlacementInfo(
        format=3,
        placement_id=number,
        name=f"p{number}",
        storage_profiles=(StorageProfile(name="default", engine="lsm"),),
        preferred_zones=zones,
        created_at_ms=0,
    )


def preferring(*zones: str) -> PlacementInfo:
    """The default placement with these zones."""
    return DEFAULT.model_copy(update={"format": 3, "preferred_zones": zones})


def table(number: int, placement_id: int | None, *leaders: str) -> TableCreated:
    """A table whose regions *leaders* lead."""
    info = table_info(number, f"t{number}", len(leaders))
    uses = {"format": 2, "placement_id": placement_id, "storage_profile": "default"}
    info = info.model_copy(update=uses if placement_id else {})
    return TableCreated(info=info, route=table_route(number, leaders))


def led_by(of: Catalog, number: int, *leaders: str) -> Catalog:
    route = of.tables[number].route
    regions = zip(route.region_routes, leaders, strict=True)
    moved = tuple(each.model_copy(update={"leader": node}) for each, node in regions)
    version = route.version + 1
    return applied(of, RouteChanged(table_id=number, version=version, regions=moved))


def counted(of: Catalog, **moved: str) -> int:
    return led_outside(of, {**ZONES, **moved})


def looked_up(of: Catalog, zone_of: dict[str, str]) -> int:
    """The same from the tables themselves."""
    zones, count = preferred_zones(of), 0
    for number in {number for held in of.nodes.values() for number in held}:
        info = of.tables[number].info
        preferred = zones.get(of.placing.placement_of(info).placement_id)
        for region in of.tables[number].route.region_routes if preferred else ():
            count += zone_of[region.leader] not in (preferred or ())
    return count


def test_given_leaders_then_those_in_none_of_the_preferred_zones_are_counted() -> None:
    tables = (
        table(1024, 1030, "dn-1", "dn-2", "dn-3"),
        table(1025, None, "dn-1", "dn-1"),
        table(1026, 1031, "dn-1"),
    )
    of = catalog_of(*(PlacementCreated(info=placement(n)) for n in (1030, 1031)), *tables)

    assert counted(of) == 0, "no placement prefers a zone"
    of = applied(of, PlacementAltered(info=placement(1030, "dn-2", "dn-3")))
    assert counted(of) == 1, "the second zone is preferred too"
    assert counted(of, **{"dn-2": "dn-1"}) == 2
    assert counted(led_by(of, 1024, "dn-1", "dn-1", "dn-1")) == 3
    of = applied(of, PlacementCreated(info=preferring("dn-3")))
    assert counted(of) == 3, "of the default placement as well, and not of the third"


def test_given_a_node_that_is_not_registered_then_what_it_leads_is_led_outside() -> None:
    of = catalog_of(PlacementCreated(info=placement(1030, "dn-9")), table(1024, 1030, "dn-9"))

    assert counted(of) == 1
    assert counted(of, **{"dn-9": "dn-9"}) == 0


def test_given_tables_that_are_dropped_then_they_are_counted_no_more() -> None:
    of = catalog_of(PlacementCreated(info=preferring("dn-2")), table(1024, None, "dn-1", "dn-1"))
    gone = TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")

    assert counted(of) == 2
    assert counted(applied(of, gone)) == 0


def test_given_any_catalog_when_it_changes_then_the_count_is_that_of_its_tables() -> None:
    for seed in range(100):
        draw = Random(seed)

        def zones(draw: Random = draw) -> list[str]:
            return draw.sample(NODES, draw.randint(0, 2))

        infos = [placement(1030, *zones()), placement(1031, *zones()), placement(1032, *zones())]
        infos.append(preferring(*zones()))
        of = catalog_of(*(PlacementCreated(info=info) for info in infos))
        zone_of = dict(ZONES)
        for number in range(1040, 1060):
            leaders = draw.choices(NODES, k=draw.randint(1, 3))
            of = applied(of, table(number, draw.choice((None, 1030, 1031, 1032)), *leaders))
        for step in range(12):
            number = draw.choice(sorted({n for held in of.nodes.values() for n in held}))
            match draw.randrange(4):
                case 0:
                    count = len(of.tables[number].route.region_routes)
                    of = led_by(of, number, *draw.choices(NODES, k=count))
                case 1:
                    drop = TableDropped(table_id=number, dropped_at_ms=1, dropped_by="p")
                    of = applied(of, drop)
                case 2:
                    info = draw.choice(infos).model_copy(update={"preferred_zones": tuple(zones())})
                    of = applied(of, PlacementAltered(info=info))
                case _:
                    zone_of[draw.choice(NODES)] = draw.choice(NODES)

            assert counted(of, **zone_of) == looked_up(of, zone_of), (seed, step)
