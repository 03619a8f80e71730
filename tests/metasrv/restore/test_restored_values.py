"""The rules of a restore: every family and kind has one, and no number is given out again."""

from typing import Any

import pytest

from keys.commit.sequence import FIRST
from keys.key import Key
from keys.model.cluster import NodeKey, Sequence, SequenceKey
from keys.model.families import FAMILIES
from keys.model.log import CatalogUpdateKey
from keys.model.records import ProcedureKey
from keys.model.removed import RemovedTableInfoKey
from keys.model.snapshot.snapshots import SnapshotPartKey, SnapshotVersionKey
from keys.model.staging.parts import LargeUpdateKey
from keys.model.tables import TableInfoKey, TableRouteKey
from metasrv.restore import restored_values
from metasrv.restore.found_regions import FoundRegions
from metasrv.restore.restore import restore
from metasrv.restore.restored_procedures import ENDED_KINDS, PARKED_KINDS
from metasrv.restore.restored_values import AS_THEY_ARE, LEFT_OUT, restored_node
from metasrv_base.wire.node.adoption import FoundRoot, Inventory
from procedures.kinds.registry import KINDS
from tests.keys.model.samples import NODE
from tests.metasrv.check.cluster import FLIGHTS
from tests.metasrv.restore.backups import Backup, Target, pieces

CHANGED: set[type[Key[Any]]] = {
    CatalogUpdateKey,
    LargeUpdateKey,
    NodeKey,
    ProcedureKey,
    RemovedTableInfoKey,
    SequenceKey,
    SnapshotPartKey,
    SnapshotVersionKey,
    TableInfoKey,
    TableRouteKey,
}


def test_given_the_families_then_each_has_one_rule() -> None:
    rules = [*LEFT_OUT, *AS_THEY_ARE, *CHANGED]

    assert len(rules) == len(set(rules))
    assert set(rules) == {family.key for family in FAMILIES}


def test_given_the_kinds_then_each_is_parked_or_ended() -> None:
    assert not PARKED_KINDS & ENDED_KINDS
    assert KINDS.keys() == PARKED_KINDS | ENDED_KINDS


def test_given_a_node_to_adopt_when_restored_again_then_it_is_of_its_first_cluster() -> None:
    once = restored_node(NODE, "first", 1)
    twice = restored_node(once, "second", 2)

    assert (once.restored_from, twice.restored_from) == ("first", "first")
    assert twice.cordon == NODE.cordon


GIVEN = 3
"""Numbers that the old cluster has given out since the backup."""


async def given_again(backup: Backup) -> set[str]:
    """The sequences of which the restored cluster gives out what the old one gave out already."""
    target = Target()
    await restore(target.deps, pieces(backup.data))
    now, again = target.facts(), set[str]()
    for name, first in FIRST.items():  # a backup may have no placement but the default
        sequence = now.get(SequenceKey(name))
        had = backup.facts.get(SequenceKey(name)) or Sequence(next=first)
        if sequence is None or sequence.next < had.next + GIVEN:
            again.add(name)
    old, new = backup.value(TableInfoKey(FLIGHTS)), now.infos()[FLIGHTS]
    for name in ("next_column_id", "next_index_id", "next_constraint_id", "schema_version"):
        if getattr(new, name) < getattr(old, name) + GIVEN:
            again.add(name)
    return again


async def test_given_no_bug_when_restored_then_no_number_is_given_again(backup: Backup) -> None:
    assert await given_again(backup) == set()


PLANTED = {
    "a restore that gives out an old id": (
        "SEQUENCE_JUMP",
        {"table_id", "schema_id", "catalog_id", "placement_id"},
    ),
    "a restore that gives out an old column": (
        "ELEMENT_JUMP",
        {"next_column_id", "next_index_id", "next_constraint_id"},
    ),
    "a restore that gives out an old schema version": ("SCHEMA_JUMP", {"schema_version"}),
}


@pytest.mark.parametrize("bug", PLANTED)
async def test_given_a_planted_bug_when_restored_then_a_number_is_given_again(
    bug: str, backup: Backup, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, found = PLANTED[bug]
    monkeypatch.setattr(restored_values, name, 0)

    assert await given_again(backup) == found


async def test_given_folders_that_name_later_numbers_when_restored_then_it_goes_on_above_them(
    backup: Backup,
) -> None:
    later = {"column_max": 9_000, "index_max": 8_000, "schema_version": 1 << 30}
    folder = FoundRoot(region_id=str(FLIGHTS << 32), root="/n").model_copy(update=later)
    found, target = FoundRegions(), Target()
    found.take(
        Inventory(node_id="dn-1", cluster_id="c", roots=[folder], dropped=[str((1 << 30) << 32)])
    )

    await restore(target.deps, pieces(backup.data), inventories=found)
    info = target.facts().infos()[FLIGHTS]
    sequence = target.facts().get(SequenceKey("table_id"))

    assert (info.next_column_id, info.next_index_id) == (9_001, 8_001)
    assert info.schema_version == info.schema_floor == (1 << 30) + 1
    assert sequence is not None
    assert sequence.next == (1 << 30) + 1
    assert {violation.rule for violation in target.violations()} == {"node-adopted"}
