"""Clusters whose default placement prefers the zone of a node. Each node of these tests is alone in
a zone of its name, and dn-2 is the first by name and load."""

from keys.commit.change import change
from keys.commit.txn import snapshot
from keys.model.log import PlacementAltered
from keys.model.placing.placements import DEFAULT_PLACEMENT, PlacementKey, default_placement
from keys.store.kv import Compare
from procedures.machine import ProcedureState
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.copies.copied_tables import with_three_in_sync
from tests.procedures.kinds.copies.copy_lives import Given, code_of, lives, regions

ELSEWHERE = "far"
"""A zone without nodes."""


def preferring(zone: str, given: Given = with_three_in_sync, *, dies: str = "") -> Given:
    """The same, where the default placement prefers the zone by now. *dies*: a node that dies."""

    async def with_preference(cluster: Cluster, fence: Compare) -> None:
        await given(cluster, fence)
        key = PlacementKey(DEFAULT_PLACEMENT)
        found = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
        before = found.get(key) or default_placement(1)
        new = {"format": 3, "version": before.version + 1, "preferred_zones": (zone,)}
        entry = PlacementAltered(info=before.model_copy(update=new))
        await cluster.change(fence, change(found, entry))
        if dies:
            cluster.plane.nodes[dies].die()

    return with_preference


def leader_after(kind: str, state: ProcedureState, given: Given) -> str:
    """The leader of the first region when the procedure has succeeded."""
    (end,), cluster = lives((kind, state), given=given)
    assert code_of(end) is None
    return str(regions(cluster)[0]["leader"])
