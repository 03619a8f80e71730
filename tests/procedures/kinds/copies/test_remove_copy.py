"""A copy is removed when enough are in sync without it, or by an operator's word."""

from typing import Any

import pytest

from procedures.kinds.copies.add_copy import ADD_COPY
from procedures.kinds.copies.remove_copy import REMOVE_COPY, RemoveCopy
from procedures.kinds.failover.change_copies import CHANGE_COPIES, ChangeCopies
from tests.procedures.harness.copies.copied_scenarios import ADD, FIRST, JOIN, REMOVE
from tests.procedures.kinds.copies.copy_lives import code_of, lives, roles

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


def test_given_the_last_copy_of_a_set_when_an_operator_removes_it_then_it_goes() -> None:
    (end,), cluster = lives((REMOVES, IN_SYNC.model_copy(update={"forced": True})))

    assert code_of(end) is None
    assert roles(cluster, 0) == []
    assert cluster.plane.nodes["dn-1"].serving[FIRST].copies_version == 2


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
