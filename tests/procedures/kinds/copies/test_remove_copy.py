"""A copy is removed when enough are in sync without it, or by an operator's word."""

from typing import Any

import pytest

from keys.store.kv import Compare
from metasrv_base.wire.node.orders import OpenRegion
from procedures.kinds.copies.add_copy import ADD_COPY
from procedures.kinds.copies.remove_copy import REMOVE_COPY, RemoveCopy
from procedures.kinds.failover.change_copies import CHANGE_COPIES, ChangeCopies
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.disk import Folder
from tests.procedures.harness.copies.copied_scenarios import ADD, FIRST, JOIN, REMOVE, THIRD
from tests.procedures.harness.copies.copied_tables import (
    COPIES,
    copied_info,
    copied_route,
    put_copied_table,
    with_copied_table,
)
from tests.procedures.harness.copies.copied_tables import IN_SYNC as MEMBER
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import NODES, put_schema, reserve_ids
from tests.procedures.kinds.copies.copy_lives import code_of, leaves_eligible, lives, roles
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

REMOVES = REMOVE_COPY.name
IN_SYNC = RemoveCopy.model_validate(
    {
        **REMOVE.model_dump(),
        "region_id": FIRST,
        "root": f"/disks/dn-2/regions/{FIRST}-1",
    }
)


def test_given_a_copy_whose_replacement_has_not_joined_when_removed_then_it_stays() -> None:
    ends, cluster = lives((ADD_COPY.name, ADD), (REMOVES, IN_SYNC))

    assert code_of(ends[1]) == "action-not-allowed"
    assert roles(cluster, 0) == [("dn-2", "in-sync"), ("dn-3", "learner")]


def test_given_a_replacement_that_has_joined_when_removed_then_it_goes_with_its_folder() -> None:
    joins = ChangeCopies.model_validate(
        {
            **JOIN.model_dump(),
            "region_id": FIRST,
            "node": "dn-3",
            "root": f"/disks/dn-3/regions/{FIRST}-1-2",
            "version": 2,
        }
    )
    ends, cluster = lives((ADD_COPY.name, ADD), (CHANGE_COPIES.name, joins), (REMOVES, IN_SYNC))

    assert [code_of(end) for end in ends] == [None] * 3
    assert roles(cluster, 0) == [("dn-3", "in-sync")]
    assert IN_SYNC.root not in cluster.plane.storage.folders
    assert FIRST not in cluster.plane.nodes["dn-2"].following


BORROWED = f"/disks/dn-1/regions/{THIRD}-0"


async def with_a_borrowed_root(cluster: Cluster, fence: Compare) -> None:
    """dn-2 leads the third region, and reads the root of its former leader still."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1", "dn-1", "dn-2"), COPIES)
    *others, third = route.region_routes
    regions = (*others, third.model_copy(update={"borrows": (BORROWED,)}))
    cluster.plane.storage.folders[BORROWED] = Folder(fence=1, files={})
    borrowing = route.model_copy(update={"region_routes": regions})
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 3), borrowing)


def test_given_a_root_that_the_leader_reads_still_when_removed_then_its_folder_stays() -> None:
    """As of a copy that led, whose failover came before the removal: that deletes the folder."""
    state = IN_SYNC.model_copy(update={"region_id": THIRD, "node": "dn-1", "root": BORROWED})

    (end,), cluster = lives((REMOVES, state), given=with_a_borrowed_root)

    assert code_of(end) is None
    assert (end.result or {})["stays"] == [BORROWED]
    assert BORROWED in cluster.plane.storage.folders


async def with_one_too_many(cluster: Cluster, fence: Compare) -> None:
    """Three copies of a region are in sync, of which two are to be."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", MEMBER), ("dn-3", MEMBER)),))
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1), route)


@pytest.mark.parametrize("dies", [False, True])
def test_given_a_member_on_a_dead_node_when_another_is_removed_then_it_does_not_count(
    dies: bool,
) -> None:
    """Else the last living copy but the leader's would go."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_one_too_many, {})
        if dies:
            cluster.plane.nodes["dn-3"].die()
            await cluster.clock.sleep_ms(60_000)

        end = await finish(cluster, REMOVES, IN_SYNC, {})

        assert code_of(end) == ("action-not-allowed" if dies else None)
        assert (("dn-2", "in-sync") in roles(cluster, 0)) is dies

    run(main, 1)


def test_given_the_last_copy_of_a_set_when_an_operator_removes_it_then_it_goes() -> None:
    (end,), cluster = lives((REMOVES, IN_SYNC.model_copy(update={"forced": True})))

    assert code_of(end) is None
    assert roles(cluster, 0) == []
    assert cluster.plane.nodes["dn-1"].serving[FIRST].copies_version == 2
    assert told_of_copies(cluster) == [(1, True), (2, False)], "the leader knew before"


def told_of_copies(cluster: Cluster) -> list[tuple[int, bool]]:
    """The versions of the copies of the first region that its leader was told of, and whether its
    last copy leaves."""
    orders = [order for node, order in cluster.plane.told if node == "dn-1"]
    opens = [order for order in orders if isinstance(order, OpenRegion)]
    copies = [order.copies for order in opens if order.region_id == FIRST]
    return [(named.version, named.last_leaves) for named in copies if named is not None]


@pytest.mark.parametrize("gone", [False, True], ids=["alive", "gone for good"])
def test_given_a_leader_that_does_not_answer_when_its_last_copy_is_removed_then_it_stays(
    gone: bool,
) -> None:
    """The leader may answer reads under the promise of that copy, cut off together with it; a
    failover of a leader that is alone waits for its lease. A node that is gone promises nothing."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_copied_table, {})
        cluster.plane.nodes["dn-1"].silent = True

        state = IN_SYNC.model_copy(update={"forced": True, "gone": gone})
        end = await finish(cluster, REMOVES, state, {})

        assert code_of(end) == (None if gone else "deadline-exceeded")
        assert roles(cluster, 0) == ([] if gone else [("dn-2", "in-sync")])

    run(main, 1)


def test_given_more_copies_in_sync_when_one_is_removed_then_its_leader_is_told_after() -> None:
    state = IN_SYNC.model_copy(update={"forced": True})

    (end,), cluster = lives((REMOVES, state), given=with_one_too_many)

    assert code_of(end) is None
    assert told_of_copies(cluster) == [(2, False)]


@pytest.mark.parametrize(
    ("others", "code"),
    [
        ({"node": "dn-1", "root": f"/disks/dn-1/regions/{FIRST}-1"}, "action-not-allowed"),
        (
            {"node": "dn-1", "root": f"/disks/dn-1/regions/{FIRST}-1", "forced": True},
            "action-not-allowed",
        ),
        ({"table_id": 999}, "table-not-found"),
    ],
)
def test_given_a_copy_that_may_not_go_when_removed_then_refused(
    others: dict[str, Any], code: str
) -> None:
    (end,), cluster = lives((REMOVES, IN_SYNC.model_copy(update=others)))

    assert code_of(end) == code
    assert roles(cluster, 0) == [("dn-2", "in-sync")]


def test_given_a_removal_that_was_done_when_asked_again_then_nothing_changes() -> None:
    ends, cluster = lives((REMOVES, REMOVE), (REMOVES, REMOVE))

    assert [code_of(end) for end in ends] == [None, None]
    assert [end.catalog_version is None for end in ends] == [False, True]
    assert roles(cluster, 1) == [("dn-3", "in-sync")]


@pytest.mark.parametrize("forced", [False, True])
def test_given_a_copy_that_may_lead_when_removed_then_only_by_force(forced: bool) -> None:
    state = IN_SYNC.model_copy(update={"forced": forced})

    ends, cluster = lives((CHANGE_COPIES.name, leaves_eligible(FIRST)), (REMOVES, state))

    assert code_of(ends[1]) == (None if forced else "action-not-allowed")
    assert roles(cluster, 0) == ([] if forced else [("dn-2", "learner")])
