"""A copy is added as a learner, or nothing is made: each refusal, and a learner that has joined."""

from functools import partial
from typing import Any

import pytest

from keys.model.tables import CopyRole
from keys.store.kv import Compare
from procedures.kinds.copies.add_copy import ADD_COPY, AddCopy
from procedures.kinds.failover.change_copies import CHANGE_COPIES
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_scenarios import ADD, FIRST, REMAKE, SECOND, THIRD
from tests.procedures.harness.copies.copied_tables import with_copied_table
from tests.procedures.kinds.copies.copy_lives import (
    code_of,
    leaves_eligible,
    lives,
    regions,
    roles,
)

ADDS = ADD_COPY.name


async def with_cordoned_node(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-3"].disk_free_bytes = 0


def test_given_a_region_with_one_copy_when_two_are_added_then_both_are_learners() -> None:
    third = ADD.model_copy(update={"region_id": THIRD, "node": "dn-2"})
    ends, cluster = lives((ADDS, third), (ADDS, third.model_copy(update={"node": "dn-3"})))

    assert [code_of(end) for end in ends] == [None, None]
    assert roles(cluster, 2) == [("dn-2", "learner"), ("dn-3", "learner")]
    versions = [copy["root"].rpartition("-")[2] for copy in regions(cluster)[2]["copies"]]
    assert versions == ["1", "2"]
    assert ends[1].result is not None
    assert ends[1].result["copies_version"] == 2


@pytest.mark.parametrize(
    ("others", "code"),
    [
        ({"node": "dn-2"}, "version-mismatch"),
        ({"node": "dn-1"}, "version-mismatch"),
        ({"node": "dn-9"}, "node-not-eligible"),
        ({"replaces": "/another/root"}, "version-mismatch"),
        ({"region_id": SECOND, "node": "dn-4"}, "replica-limit"),
        (
            {"node": "dn-2", "replaces": f"/disks/dn-2/regions/{FIRST}-1"},
            "version-mismatch",
        ),
        ({"region_id": str(int(THIRD) + 7)}, "not-found"),
        ({"table_id": 999}, "table-not-found"),
    ],
)
@pytest.mark.case("greptime 120")
def test_given_a_copy_that_may_not_be_when_added_then_refused_before_anything_is_made(
    others: dict[str, Any], code: str
) -> None:
    state = AddCopy.model_validate({**ADD.model_dump(), **others})

    (end,), cluster = lives((ADDS, state))

    assert code_of(end) == code
    assert [roles(cluster, region) for region in range(3)] == [
        [("dn-2", "in-sync")],
        [("dn-2", "learner"), ("dn-3", "in-sync")],
        [],
    ]
    assert len(cluster.plane.storage.folders) == 6


def test_given_a_node_without_room_when_added_then_refused() -> None:
    (end,), _ = lives((ADDS, ADD), given=with_cordoned_node)

    assert code_of(end) == "node-not-eligible"


def test_given_a_lost_learner_of_several_too_many_when_made_anew_then_it_is() -> None:
    """It takes the place of another, also if the table is to have one copy by now."""
    (end,), cluster = lives((ADDS, REMAKE), given=partial(with_copied_table, replicas=1))

    assert code_of(end) is None
    assert [node for node, _ in roles(cluster, 1)] == ["dn-3", "dn-2"]


def test_given_a_lost_learner_when_made_anew_then_in_another_root_and_the_old_one_goes() -> None:
    """Acknowledgements of the old root count for no other."""
    (end,), cluster = lives((ADDS, REMAKE))

    (learner,) = [
        copy for copy in regions(cluster)[1]["copies"] if copy["role"] == CopyRole.LEARNER.value
    ]
    assert learner["root"] != REMAKE.replaces
    assert REMAKE.replaces not in cluster.plane.storage.folders
    assert learner["root"] in cluster.plane.storage.folders
    assert end.result is not None
    assert end.result["stays"] == []


@pytest.mark.parametrize("gives_up", [False, True])
def test_given_a_copy_that_may_lead_when_made_anew_then_only_if_given_up_and_its_folder_stays(
    gives_up: bool,
) -> None:
    """It may be the only other disk with every acknowledged row."""
    root = f"/disks/dn-2/regions/{FIRST}-1"
    update = {"region_id": FIRST, "replaces": root, "gives_up": gives_up}
    anew = REMAKE.model_copy(update=update)

    ends, cluster = lives((CHANGE_COPIES.name, leaves_eligible(FIRST)), (ADDS, anew))

    assert code_of(ends[1]) == (None if gives_up else "action-not-allowed")
    (copy,) = regions(cluster)[0]["copies"]
    assert (copy["root"] == root, copy.get("eligible_epoch")) == (
        (False, None) if gives_up else (True, 1)
    )
    assert root in cluster.plane.storage.folders
    assert (ends[1].result or {}).get("stays") == ([root] if gives_up else None)
