"""Lives in which folders that no route names go into quarantine at their node, or are deleted."""

from keys.store.kv import Compare
from procedures.kinds.orphans.remove_orphans import OrphanFolder, RemoveOrphans
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.disk import Folder
from tests.procedures.harness.ends import TABLE, End, effects, is_true, serving
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import NODES, put_table, region_ids, reserve_ids, table_info

MOVED, HERE = region_ids(TABLE, 2)
GONE = str(4096 << 32)
FOLDERS = "/disks/dn-1/regions"
LEFT, UNKNOWN, CLAIMED = (f"{FOLDERS}/{MOVED}-0", f"{FOLDERS}/{GONE}-1", f"{FOLDERS}/{HERE}-1")
"""A copy that was removed, the folder of a table that was purged, and the root of a region."""
ORPHANS = (LEFT, UNKNOWN)
SINCE_MS = 7


async def with_orphans(cluster: Cluster, fence: Compare) -> None:
    """Table t has a region on dn-2 and one on dn-1, which also has two folders of before."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_table(cluster, fence, table_info(TABLE, "t", 2), ("dn-2", "dn-1"))
    for root in ORPHANS:
        cluster.plane.storage.folders[root] = Folder(fence=1, epoch=1)


async def with_quarantine(cluster: Cluster, fence: Compare) -> None:
    """The folders of before are in quarantine; so is a folder that the route names."""
    await with_orphans(cluster, fence)
    storage = cluster.plane.storage
    for root in (*ORPHANS, CLAIMED):
        storage.quarantined[root, SINCE_MS] = storage.folders[root].copied()
    for root in ORPHANS:
        del storage.folders[root]


def quarantined(end: End) -> list[str]:
    """Each is in one place, and the root of the region where it was."""
    storage = end.cluster.plane.storage
    away = {root for root, _ in storage.quarantined}
    places = [(root in storage.folders) + (root in away) for root in ORPHANS]
    return [
        *effects(end),
        *serving(end, TABLE, epoch=1),
        *is_true(places == [1, 1], f"not in one place: {places}"),
        *is_true(CLAIMED not in away, "the root of a region is in quarantine"),
    ]


def deleted(end: End) -> list[str]:
    """Nothing is where it was, and what the route names is kept."""
    storage = end.cluster.plane.storage
    back = [root for root in ORPHANS if root in storage.folders]
    return [
        *effects(end),
        *serving(end, TABLE, epoch=1),
        *is_true((CLAIMED, SINCE_MS) in storage.quarantined, "a folder of a region was deleted"),
        *is_true(not back, f"back: {back}"),
    ]


def named(at_ms: int | None, *roots: str) -> tuple[OrphanFolder, ...]:
    regions = {LEFT: MOVED, UNKNOWN: GONE, CLAIMED: HERE}
    return tuple(OrphanFolder(root=root, region_id=regions[root], at_ms=at_ms) for root in roots)


QUARANTINE = RemoveOrphans(
    node="dn-1", deletes=False, folders=named(None, *ORPHANS, CLAIMED), grace_ms=1
)
DELETE = RemoveOrphans(
    node="dn-1", deletes=True, folders=named(SINCE_MS, *ORPHANS, CLAIMED), grace_ms=1
)
ORPHAN_SCENARIOS = (
    Scenario(
        "remove_orphans",
        "remove_orphans",
        QUARANTINE,
        with_orphans,
        {FULL: quarantined},
        undone=quarantined,
    ),
    Scenario(
        "remove_orphans, from quarantine",
        "remove_orphans",
        DELETE,
        with_quarantine,
        {FULL: deleted},
        undone=deleted,
    ),
)
