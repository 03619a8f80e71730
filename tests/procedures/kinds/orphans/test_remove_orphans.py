"""Folders go into quarantine, and from there, by proof alone: each reason for which one stays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from keys.commit.txn import Txn, snapshot
from keys.model.cluster import DATANODE, ClusterKey, NodeKey, Removal, RestoredFrom, Returned
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable
from metasrv_base.wire.node.orders import (
    DeleteQuarantined,
    Order,
    OrderError,
    OrderResult,
    QuarantineRoot,
)
from procedures.context import Context
from procedures.kinds.orphans import remove_orphans
from procedures.kinds.orphans.remove_orphans import (
    REMOVE_ORPHANS,
    TRIES_MAX,
    OrphanFolder,
    RemoveOrphans,
)
from procedures.locking.holding import LockClaim
from procedures.locking.locks import exclusive, table_key
from procedures.machine import Step
from procedures.ports import NodeOrders, Sender
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.datanodes.disk import Folder
from tests.procedures.harness.ends import TABLE
from tests.procedures.kinds.orphans.orphan_lives import (
    Act,
    commit,
    life,
    name_again,
    named_meanwhile,
)
from tests.procedures.kinds.orphans.orphan_scenarios import (
    CLAIMED,
    DELETE,
    FOLDERS,
    HERE,
    LEFT,
    MOVED,
    ORPHANS,
    QUARANTINE,
    SINCE_MS,
    UNKNOWN,
)


def test_given_proof_when_folders_are_put_away_then_each_with_it_and_the_regions_stay() -> None:
    end = life(QUARANTINE)

    assert end.result == {
        "node": "dn-1",
        "deletes": False,
        "folders": {LEFT: "other-root", UNKNOWN: "no-table"},
        "waiting": {CLAIMED: "claimed"},
    }
    assert (end.quarantined, CLAIMED in end.folders) == (set(ORPHANS), True)
    told = [one for _, one in end.cluster.plane.told if isinstance(one, QuarantineRoot)]
    assert {(one.root, one.epoch, one.fence_epoch, one.fence_opening) for one in told} == {
        (root, 1, 1, 1) for root in ORPHANS
    }
    assert len({one.at_ms for one in told}) == 1


def test_given_the_retention_is_over_when_deleted_then_what_has_proof_and_no_other() -> None:
    end = life(DELETE)

    assert end.result is not None
    assert (set(end.result["folders"]), end.waiting) == (set(ORPHANS), {CLAIMED: "claimed"})
    assert end.quarantined == {CLAIMED}


def test_given_a_retention_that_lasts_when_deleted_then_nothing_is_judged_or_told() -> None:
    end = life(DELETE.model_copy(update={"grace_ms": 1 << 50}))

    assert end.result is not None
    assert (end.result["folders"], end.waiting) == ({}, {})
    assert end.quarantined == {*ORPHANS, CLAIMED}


def test_given_a_fence_that_is_young_when_put_away_then_the_folders_wait() -> None:
    end = life(QUARANTINE.model_copy(update={"grace_ms": 1 << 50}))

    assert end.waiting == {LEFT: "young", UNKNOWN: "young", CLAIMED: "claimed"}
    assert end.quarantined == set()


async def busy(cluster: Cluster) -> None:
    """As if another procedure had a lock of the table."""
    locks = (exclusive(table_key(TABLE)),)
    cluster.leader.manager.locks.add(LockClaim("another", 0, locks))


async def read_elsewhere(cluster: Cluster) -> None:
    own = cluster.plane.storage.folders[f"/disks/dn-2/regions/{MOVED}-1"]
    own.inputs = {(LEFT, "f1"): frozenset({"x"})}


async def elsewhere_gone(cluster: Cluster) -> None:
    del cluster.plane.storage.folders[f"/disks/dn-2/regions/{MOVED}-1"]


async def elsewhere_silent(cluster: Cluster) -> None:
    cluster.plane.nodes["dn-2"].silent = True


async def restored(cluster: Cluster) -> None:
    key = ClusterKey()
    read = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    source = RestoredFrom(cluster_id="old", revision=1, made_at_ms=1)
    value = read.must(key).model_copy(update={"restored": source})
    await commit(cluster, Txn.on(read).put(key, value))


@pytest.mark.parametrize("state", [QUARANTINE, DELETE], ids=["put away", "deleted"])
@pytest.mark.parametrize(
    ("before", "root", "wait"),
    [
        (busy, LEFT, "busy"),
        (read_elsewhere, LEFT, "borrowed"),
        (elsewhere_gone, LEFT, "readers"),
        (elsewhere_silent, LEFT, "readers"),
        (restored, UNKNOWN, "restored"),
        (name_again, LEFT, "claimed"),
    ],
)
def test_given_a_doubt_when_judged_then_that_folder_stays_with_the_reason_and_the_other_goes(
    before: Act, root: str, wait: str, state: RemoveOrphans
) -> None:
    (other,) = {*ORPHANS} - {root}

    end = life(state, before)

    assert end.waiting == {root: wait, CLAIMED: "claimed"}
    where = end.quarantined if state.deletes else end.folders
    assert (root in where, other in where) == (True, False)


@pytest.mark.parametrize("error", [None, "EIO"])
def test_given_a_region_that_cannot_be_read_when_judged_then_its_former_folders_stay(
    error: str | None,
) -> None:
    """It may read them; nobody knows."""
    former = f"{FOLDERS}/{HERE}-0"

    async def here(cluster: Cluster) -> None:
        folders = cluster.plane.storage.folders
        folders[CLAIMED].error = error
        folders[former] = Folder(fence=1, epoch=1)

    state = QUARANTINE.model_copy(update={"folders": (OrphanFolder(root=former, region_id=HERE),)})
    end = life(state, here)

    assert end.waiting == ({} if error is None else {former: "readers"})
    assert (former in end.quarantined) is (error is None)


async def returned(cluster: Cluster) -> None:
    removal = Removal(at_ms=1, by="anna", reason="test")
    value = Returned(removal=removal, folders=(), folder_count=0)
    await alter_node(cluster, {"returned": value})


async def of_the_old_cluster(cluster: Cluster) -> None:
    await alter_node(cluster, {"restored_from": "old"})


async def alter_node(cluster: Cluster, update: Mapping[str, object]) -> None:
    key = NodeKey(DATANODE, "dn-1")
    read = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    await commit(cluster, Txn.on(read).put(key, read.must(key).model_copy(update=update)))


@pytest.mark.parametrize("before", [returned, of_the_old_cluster])
def test_given_a_node_that_an_operator_must_release_or_adopt_then_nothing_on_it_is_touched(
    before: Act,
) -> None:
    for state in (QUARANTINE, DELETE):
        end = life(state, before)

        assert end.result is not None
        assert (end.result["folders"], end.waiting) == ({}, {})
        assert ORPHANS[0] in (end.quarantined if state.deletes else end.folders)


@pytest.mark.parametrize(
    ("error", "waiting"),
    [
        (Conflict("action-not-allowed", state="in use"), "action-not-allowed"),
        (Conflict("stale-epoch"), "stale-epoch"),
        (Refused("invalid-request"), "invalid-request"),
    ],
)
def test_given_a_node_that_will_not_do_it_when_ordered_then_the_folders_are_said_to_stay(
    error: MetaError, waiting: str
) -> None:
    async def refuses(cluster: Cluster) -> None:
        cluster.plane.nodes["dn-1"].refuses["quarantine"] = error

    end = life(QUARANTINE, refuses)

    assert end.outcome == "succeeded"
    assert end.waiting == {LEFT: waiting, UNKNOWN: waiting, CLAIMED: "claimed"}
    assert end.quarantined == set()


@dataclass
class Doubtful:
    """Orders to nodes of which the first *left* come to nothing that anybody knows."""

    nodes: NodeOrders
    left: int
    raises: bool
    sent: int = 0

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        self.sent += 1
        if self.sent > self.left:
            return await self.nodes.send(node, orders, sender=sender)
        if self.raises:
            raise Unavailable(what="node", name=node)
        first, *others = await self.nodes.send(node, orders, sender=sender)
        error = OrderError(code="outcome-unknown", facts={})
        return first.model_copy(update={"error": error}), *others


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("left", [2, TRIES_MAX])
def test_given_a_node_that_does_not_say_what_became_of_it_then_it_ends_after_some_tries(
    left: int, raises: bool
) -> None:
    """The node lives, and its disk answers the rename with an error, or orders do not reach it."""
    asked: list[Doubtful] = []

    async def orders(state: RemoveOrphans, at: Context) -> Any:
        asked.append(Doubtful(at.ports.nodes, left, raises))
        ports = replace(at.ports, nodes=cast("NodeOrders", asked[0]))
        return await remove_orphans.order(state, replace(at, ports=ports))

    steps = {**REMOVE_ORPHANS.steps, "order": Step(orders, waits=True)}
    end = life(QUARANTINE, kind=replace(REMOVE_ORPHANS, steps=steps))

    code = "not-ready" if raises else "outcome-unknown"
    unsettled = {} if left < TRIES_MAX else dict.fromkeys(ORPHANS if raises else [LEFT], code)
    assert end.result is not None
    assert end.outcome == "succeeded"
    assert end.waiting == {**unsettled, CLAIMED: "claimed"}
    assert {*end.result["folders"]} == {*ORPHANS} - {*unsettled}
    assert [one.sent for one in asked] == [min(left + 1, TRIES_MAX)]


def test_given_a_node_that_dies_behind_the_proof_when_ordered_then_it_ends_and_all_stays() -> None:
    async def dies_and_orders(state: RemoveOrphans, at: Context) -> Any:
        lived[0].plane.nodes["dn-1"].die()
        return await remove_orphans.order(state, at)

    lived: list[Cluster] = []

    async def keep(cluster: Cluster) -> None:
        lived.append(cluster)

    steps = {**REMOVE_ORPHANS.steps, "order": Step(dies_and_orders, waits=True)}
    end = life(QUARANTINE, keep, replace(REMOVE_ORPHANS, steps=steps))

    assert end.result is not None
    assert (end.outcome, end.result["folders"]) == ("succeeded", {})
    assert set(ORPHANS) < end.folders


def test_given_a_route_that_names_a_folder_meanwhile_when_committed_then_it_is_judged_again() -> (
    None
):
    end = named_meanwhile()

    assert end.waiting == {LEFT: "claimed", CLAIMED: "claimed"}
    deleted = [one.root for _, one in end.cluster.plane.told if isinstance(one, DeleteQuarantined)]
    assert set(deleted) == {UNKNOWN}
    assert (LEFT, SINCE_MS) in end.cluster.plane.storage.quarantined
