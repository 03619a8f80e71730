"""Places of regions of a restored cluster, judged as the adoption wrote them."""

import pytest

from keys.model.tables import RegionRoute, RegionState, TableRoute, TableRouteKey
from keys.store.kv import Event, Watched
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.restore.found_regions import FoundRegions
from tests.fakes.clock import FakeClock
from tests.metasrv.nodes.samples import info
from tests.sim.checks.restore_invariants import LastKnown, RestoreGhost, Tables

TABLE = 1024
LAST = RegionRoute(
    region_id=str(TABLE << 32),
    leader="dn-1",
    epoch=3,
    state=RegionState.OPEN,
    root="/dn-1/3",
    announced=True,
)
ADOPTED = LAST.model_copy(update={"epoch": 4})
FAILED_OVER = LAST.model_copy(
    update={"leader": "dn-2", "epoch": 5, "root": "/dn-2/5", "borrows": (LAST.root,)}
)


def route_of(region: RegionRoute) -> TableRoute:
    return TableRoute(table_id=TABLE, version=1, region_routes=(region,))


def judged(*written: RegionRoute, is_over: bool = True) -> list[str]:
    wrong = list[str]()
    tables = Tables({TABLE: info(TABLE)}, {TABLE: route_of(LAST)})
    old = LastKnown(tables.infos, tables.routes)
    ghost = RestoreGhost(tables, old, FoundRegions(), MemoryKv(FakeClock()), wrong.append)
    for revision, region in enumerate(written, start=1):
        event = Event(bytes(TableRouteKey(TABLE)), encode(route_of(region)), revision)
        ghost.written(Watched(revision, (event,)))
    ghost.judge_places(is_over=is_over)
    return wrong


def test_given_a_failover_while_the_adoption_goes_on_when_judged_then_nothing_is_wrong() -> None:
    assert judged(ADOPTED, FAILED_OVER) == []


@pytest.mark.parametrize(
    "first",
    [
        FAILED_OVER,
        ADOPTED.model_copy(update={"epoch": LAST.epoch}),
        ADOPTED.model_copy(update={"state": RegionState.OPENING}),
    ],
)
def test_given_a_wrong_first_place_when_judged_then_it_is_wrong_also_once_it_moved(
    first: RegionRoute,
) -> None:
    assert len(judged(first, ADOPTED)) == 1


def test_given_a_region_that_opened_early_when_judged_then_wrong_also_once_it_is_lost() -> None:
    lost = ADOPTED.model_copy(update={"state": RegionState.LOST})

    assert len(judged(ADOPTED, lost, is_over=False)) == 1
    assert judged(lost, is_over=False) == []
