"""A failover plan, its orders and the files of three nodes, whose second dies as it opens."""

from pathlib import Path

import pytest

from dataplane.datanode.copies.roles import needs_epoch
from dataplane.datanode.regions.store import DiskStore
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engines.engine import ServedRegion
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, TableRoute
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.failover_plan import DrainTarget, reroute_plan
from procedures.ports import NodeView
from procedures.steps.region_orders import create_order, open_order
from tests.dataplane.region.rig import Contents, contents, write
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import table_info, table_route


class Killed(BaseException):
    """The process ends."""


class DyingDisk(LocalDisk):
    """Its process ends when it first reads: behind its fences."""

    def read(self, path: str, offset: int, length: int) -> bytes:
        raise Killed


INFO = table_info(TABLE, "t", 1)
ROWS: Contents = {b"a": (1, "acknowledged")}


def store(base: Path, name: str, disk: LocalDisk) -> DiskStore:
    (base / name).mkdir(exist_ok=True)
    return DiskStore(disk, SystemClock(), str(base / name))


def led(base: Path) -> RegionRoute:
    (region,) = table_route(TABLE, ("dn-1",)).region_routes
    return region.model_copy(update={"root": f"{base}/dn-1/regions/r-1"})


def begun(base: Path, region: RegionRoute) -> None:
    """The first node makes it and acknowledges a row in it."""
    made = store(base, "dn-1", LocalDisk()).create(create_order(INFO, region))
    write(made, "s", ROWS)


def moved(base: Path, region: RegionRoute, target: str) -> RegionRoute:
    """By the plan, when nobody but *target* is left."""
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    nodes = [NodeView(target, "a", f"{base}/{target}", True, 0, 1 << 40)]
    (plan,) = reroute_plan(route, nodes, DrainTarget("dn-1", (region.region_id,)))
    return plan.region


def opened(base: Path, region: RegionRoute) -> ServedRegion:
    return store(base, region.leader, LocalDisk()).open(open_order(INFO, region))


def test_given_a_second_node_that_dies_behind_its_fences_when_a_third_opens_then_it_serves(
    tmp_path: Path,
) -> None:
    first = led(tmp_path)
    begun(tmp_path, first)
    second = moved(tmp_path, first, "dn-2")
    with pytest.raises(Killed):
        store(tmp_path, "dn-2", DyingDisk()).open(open_order(INFO, second))

    third = opened(tmp_path, moved(tmp_path, second, "dn-3"))

    assert contents(third) == ROWS


def test_given_a_second_node_that_opened_and_was_not_announced_when_a_third_opens_then_it_serves(
    tmp_path: Path,
) -> None:
    first = led(tmp_path)
    begun(tmp_path, first)
    second = moved(tmp_path, first, "dn-2")
    opened(tmp_path, second)

    third = opened(tmp_path, moved(tmp_path, second, "dn-3"))

    assert contents(third) == ROWS


def test_given_a_borrower_that_a_copy_has_joined_when_it_starts_again_then_it_needs_an_epoch(
    tmp_path: Path,
) -> None:
    """It would be refused for ever otherwise, and the copy, which has all rows, would not lead."""
    second = moved(tmp_path, led(tmp_path), "dn-2")
    joined = RegionCopy(node="dn-3", root=f"{tmp_path}/dn-3/r", role=CopyRole.IN_SYNC)
    order = open_order(INFO, second.with_copies((joined,)))

    with pytest.raises(Unavailable) as refused:
        store(tmp_path, "dn-2", LocalDisk()).lead(order)

    assert needs_epoch(refused.value)
