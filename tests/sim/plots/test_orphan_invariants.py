"""Folders that come into quarantine are judged by the routes of every revision."""

from collections import Counter

from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.manifests.fence import FenceContent, raise_own_fence
from keys.model.cluster import DATANODE, NodeKey, NodeRecord, Removal, Resources, Returned
from keys.model.removed import RemovedTableRoute, RemovedTableRouteKey
from keys.model.tables import TableRoute, TableRouteKey
from keys.store.kv import Event, Watched
from tests.procedures.harness.tables import table_route
from tests.sim.checks.orphan_invariants import DELETED, GRACE_MS, QUARANTINED, OrphanGhost
from tests.sim.cluster.disks import Disks

TABLE = 1024
ROUTE = table_route(TABLE, ("dn-1",))
(REGION,) = ROUTE.region_routes
LEFT, HELD = "/dn-1/data/regions/77-1", "/dn-1/data/quarantine/77-1@9"


def naming(root: str) -> TableRoute:
    return ROUTE.with_regions((REGION.model_copy(update={"root": root}),))


class Judged:
    """A ghost that has seen a route of one region, whose root is LEFT."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.counts = Counter[str]()
        self.ghost = OrphanGhost(lambda: (), self.counts, self.told.append)
        self.write(naming(LEFT))

    def write(self, route: TableRoute | None) -> None:
        value = None if route is None else route.model_dump_json().encode()
        event = Event(bytes(TableRouteKey(TABLE)), value, 2)
        self.ghost.written(Watched(2, (event,)))

    def note(self, node: NodeRecord) -> None:
        key = bytes(NodeKey(DATANODE, node.node_id))
        self.ghost.written(Watched(2, (Event(key, node.model_dump_json().encode(), 2),)))

    def drop(self) -> None:
        removed = RemovedTableRoute(route=naming(LEFT), dropped_at_ms=1, dropped_by="p")
        value = removed.model_dump_json().encode()
        self.write(None)
        event = Event(bytes(RemovedTableRouteKey(TABLE)), value, 3)
        self.ghost.written(Watched(3, (event,)))


def test_given_a_folder_that_a_route_names_when_it_comes_into_quarantine_then_it_is_told() -> None:
    judged = Judged()

    judged.ghost.moved(LEFT, HELD)

    assert "is named by" in judged.told[0]


def test_given_a_folder_of_a_dropped_table_when_it_comes_into_quarantine_then_it_is_told() -> None:
    judged = Judged()
    judged.drop()

    judged.ghost.moved(LEFT, HELD)

    assert "is named by" in judged.told[0]


def test_given_a_folder_that_nobody_names_when_it_goes_then_it_is_counted_alone() -> None:
    judged = Judged()
    judged.write(naming("/dn-2/data/regions/77-2"))

    judged.ghost.moved(LEFT, HELD)
    judged.ghost.removed(HELD)
    judged.ghost.removed("/dn-1/data/regions/78-1")

    assert judged.told == []
    assert judged.counts == {QUARANTINED: 1, DELETED: 1}


def test_given_a_folder_that_went_when_a_route_names_it_then_it_is_told_unless_its_disk_was_lost() -> (  # noqa: E501
    None
):
    judged = Judged()
    judged.write(None)
    judged.ghost.moved(LEFT, HELD)
    judged.ghost.removed(HELD)

    judged.write(naming(LEFT))
    judged.ghost.lost("dn-1")
    judged.write(naming(LEFT))

    (told,) = judged.told
    assert "was deleted, and a route names it again" in told


def test_given_folders_at_the_end_then_those_that_nobody_names_are_left_unless_they_wait() -> None:
    judged, disks = Judged(), Disks()
    disk = MemoryDisk(disks.store("/dn-1"))
    other, young, bare = (f"/dn-1/data/regions/{number}-1" for number in (78, 79, 80))
    for root, made_ms in ((LEFT, 0), (other, 0), (young, 1_000), (bare, None)):
        disk.make_folder(root)
        if made_ms is not None:
            region_id = int(root.rpartition("/")[2].partition("-")[0])
            claim = FenceContent(
                region_id=region_id, epoch=1, opening=0, root=root, created_ms=made_ms
            )
            raise_own_fence(disk, root, claim)
    disk.make_folder(HELD)

    assert judged.ghost.left(disks, GRACE_MS) == [other, HELD]


def test_given_a_node_that_was_removed_and_returned_then_its_folders_wait_for_an_operator() -> None:
    judged, disks = Judged(), Disks()
    MemoryDisk(disks.store("/dn-1")).make_folder(HELD)
    node = NodeRecord(
        node_id="dn-1",
        role=DATANODE,
        address="http://dn-1",
        zone="z",
        root="/dn-1/data",
        version="1",
        incarnation="i",
        resources=Resources(cpu_cores=1, memory_bytes=1, disk_bytes=1),
        registered_at_ms=1,
    )
    removal = Removal(at_ms=1, by="anna", reason="sold")

    judged.note(node.model_copy(update={"returned": Returned(removal=removal)}))
    assert judged.ghost.left(disks, GRACE_MS) == []
    judged.note(node)

    assert judged.ghost.left(disks, GRACE_MS) == [HELD]
