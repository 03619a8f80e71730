"""Batches and reads refused below a floor are counted by table and holder; no others are."""

from dataplane.datanode.regions.refusals import NAMES_MAX, Refusals
from metasrv_base.errors import Conflict
from metasrv_base.wire.node.nodes import RefusedStat

BELOW = Conflict("schema-version-stale", floor=3, found=2)


def test_given_refusals_when_asked_then_each_table_and_holder_is_counted_by_itself() -> None:
    refusals = Refusals()
    for table_id, holder in ((7, "fe-2"), (7, "fe-1"), (7, None), (8, "fe-1"), (7, "fe-1")):
        refusals.note(BELOW, table_id, holder)

    found = refusals.stats()

    assert found == [
        RefusedStat(table_id=7, holder_id=None, count=1),
        RefusedStat(table_id=7, holder_id="fe-1", count=2),
        RefusedStat(table_id=7, holder_id="fe-2", count=1),
        RefusedStat(table_id=8, holder_id="fe-1", count=1),
    ]
    assert refusals.total == 5


def test_given_another_conflict_when_noted_then_it_is_not_the_floors() -> None:
    refusals = Refusals()
    refusals.note(Conflict("stale-epoch", epoch=2, found=1), 7, "fe-1")
    refusals.note(Conflict("schema-version-stale", current=3, found=2), 7, "fe-1")

    assert refusals.stats() == []


def test_given_more_names_than_are_kept_then_every_refusal_is_still_counted() -> None:
    refusals = Refusals()
    for number in range(NAMES_MAX + 10):
        refusals.note(BELOW, number, "x" * 64)
    refusals.note(BELOW, 5, "x" * 64)

    found = refusals.stats()

    assert len(found) == NAMES_MAX + 1
    assert (found[0].holder_id, found[0].count) == (None, 10)
    assert refusals.total == NAMES_MAX + 11
