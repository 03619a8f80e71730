"""Tables in which nothing is to be done are looked at once, and again when something changes."""

import pytest

from keys.catalog.catalog import Catalog
from keys.model.log import RouteChanged, TableCreated
from metasrv.leadership.copies import copy_survey
from metasrv.leadership.copies.copy_survey import (
    ABSENT_MS,
    FORGET_LOOKS,
    CopySurvey,
    CopySurveyor,
    regions_of,
)
from metasrv_base.concurrency.turns import at_once
from tests.metasrv.leadership.copies.copied_regions import (
    IN_SYNC,
    LEARNER,
    applied,
    nodes_of,
    view,
)
from tests.metasrv.nodes.catalogs import catalog_of
from tests.procedures.harness.copies.copied_tables import Copies, copied_info, copied_route
from tests.procedures.harness.tables import table_info, table_route

FIRST, SECOND, PLAIN = 1024, 1025, 1026
SOUND: tuple[Copies, ...] = ((("dn-2", IN_SYNC),),)
LEARNING: tuple[Copies, ...] = ((("dn-2", LEARNER),),)
NODES = nodes_of(*(view(f"dn-{number}") for number in range(1, 4)))


def made(table_id: int, copies: tuple[Copies, ...]) -> TableCreated:
    route = copied_route(table_id, ("dn-1",), copies)
    return TableCreated(info=copied_info(table_id, f"t{table_id}", 1), route=route)


class Looks:
    """The tables that each look has decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, catalog: Catalog) -> None:
        self.catalog, self.tables = catalog, list[int]()
        self.surveyor, self.nodes = CopySurveyor(), NODES
        monkeypatch.setattr(copy_survey, "regions_of", self._regions_of)

    def _regions_of(self, catalog: Catalog, table_id: int) -> object:
        self.tables.append(table_id)
        return regions_of(catalog, table_id)

    def look(self, now_ms: int = 0, lacking: str = "") -> CopySurvey:
        self.tables.clear()

        def lacks(node: str, region_id: str) -> int | None:
            return ABSENT_MS if node == lacking else None

        return at_once(self.surveyor.look(self.catalog, self.nodes, lacks, now_ms))


def catalog() -> Catalog:
    plain = TableCreated(info=table_info(PLAIN, "p", 1), route=table_route(PLAIN, ("dn-1",)))
    return catalog_of(made(FIRST, SOUND), made(SECOND, SOUND), plain)


def test_given_tables_that_need_nothing_then_they_are_decoded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = Looks(monkeypatch, catalog())

    assert looks.look().needs == ()
    assert looks.tables == [FIRST, SECOND], "a table with one copy of each region is none of ours"
    assert looks.look().needs == ()
    assert looks.tables == []


def test_given_a_changed_route_or_a_lost_node_then_its_tables_are_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = Looks(monkeypatch, catalog())
    looks.look()
    route = looks.catalog.tables[FIRST].route
    (region,) = route.region_routes
    changed = region.with_copies(())
    entry = RouteChanged(table_id=FIRST, version=route.version + 1, regions=(changed,))
    looks.catalog = applied(looks.catalog, entry)

    assert len(looks.look().needs) == 1
    assert looks.tables == [FIRST]
    looks.nodes = nodes_of(*NODES.views.values(), offline={"dn-2"})
    looks.look()
    assert looks.tables == [FIRST, SECOND]


def test_given_many_looks_then_every_table_is_looked_at_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = Looks(monkeypatch, catalog())
    decoded = 0
    for _ in range(FORGET_LOOKS + 1):
        looks.look()
        decoded += len(looks.tables)

    assert decoded == 4


def test_given_a_learner_that_is_absent_then_it_is_needed_after_the_time_and_not_if_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = Looks(monkeypatch, catalog_of(made(FIRST, LEARNING)))

    assert looks.look(0, lacking="dn-2").needs == ()
    assert looks.look(ABSENT_MS - 1, lacking="dn-2").needs == ()
    (need,) = looks.look(ABSENT_MS, lacking="dn-2").needs
    assert need.unmade is not None
    assert looks.look(ABSENT_MS + 1).needs == (), "it is there"
    assert looks.look(ABSENT_MS + 2, lacking="dn-2").needs == (), "it counts anew"
    assert looks.look(ABSENT_MS + 3).nodes.learners == {"dn-2": 1}
