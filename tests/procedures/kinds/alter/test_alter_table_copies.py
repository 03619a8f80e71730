"""A table with copies is altered or checked while its leaders are lost with their disks."""

import pytest

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from metasrv_base.values.frozen import frozen
from procedures.machine import ProcedureState
from tests.fakes.cluster import Cluster
from tests.procedures.harness.checking import CHECKS
from tests.procedures.harness.constraints import CONSTRAINS, no_marks
from tests.procedures.harness.copies.altering import indexed, same_at_copies
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    LEARNER,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.ends import TABLE, End, is_true
from tests.procedures.harness.filling import Filling, filling
from tests.procedures.harness.online import UNINDEXES, told
from tests.procedures.harness.scenarios import MOVED
from tests.procedures.harness.tables import NODES, put_schema, region_ids, reserve_ids

COPIES = ((("dn-2", IN_SYNC),), (("dn-2", LEARNER), ("dn-3", IN_SYNC)))
PROMOTED = MOVED.model_copy(update={"region_ids": region_ids(TABLE, 2)})


@frozen
class Change:
    kind: str
    state: ProcedureState
    versions: tuple[int, int]
    """Schema version and floor at the end."""
    reads: bool
    """Whether jobs read rows."""


CHANGES = (
    Change("alter_table", CONSTRAINS, (3, 2), reads=True),
    Change("drop_index", UNINDEXES, (4, 4), reads=False),
    Change("check_table", CHECKS, (1, 1), reads=True),
)


async def with_copies(cluster: Cluster, fence: Compare) -> None:
    """Table t, led by dn-1, has an index, and another copy in the set of each of two regions."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    partition = indexed().partition.model_copy(update={"count": 2})
    info = indexed().model_copy(update={"partition": partition})
    await put_copied_table(cluster, fence, info, copied_route(TABLE, ("dn-1",) * 2, COPIES))


def lose_disk(at: Filling) -> None:
    folders = at.cluster.plane.storage.folders
    at.cluster.plane.storage.lost |= {root for root in folders if root.startswith("/disks/dn-1/")}


def over(change: Change, end: End) -> list[str]:
    leaders = [region["leader"] for region in end.regions(TABLE)]
    return [
        *told(end, *change.versions),
        *same_at_copies(end),
        *no_marks(end),
        *is_true(leaders == ["dn-2", "dn-3"], f"led by {leaders}"),
    ]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.kind)
def test_given_orders_that_wait_when_the_leaders_are_lost_then_the_change_ends_at_their_copies(
    change: Change,
) -> None:
    async def scenario(at: Filling) -> None:
        at.refuse("schema")
        await at.submit(change.kind, change.state)
        await at.settle()

        lose_disk(at)
        await at.fail_over(PROMOTED)
        ended = await at.go_on()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, lambda end: over(change, end)) == []

    filling(scenario, with_copies)


@pytest.mark.parametrize(
    "change", [each for each in CHANGES if each.reads], ids=lambda change: change.kind
)
def test_given_jobs_that_read_when_the_leaders_are_lost_then_the_marks_stand_at_their_copies(
    change: Change,
) -> None:
    async def scenario(at: Filling) -> None:
        await at.submit(change.kind, change.state)
        await at.settle()
        began = at.jobs.began

        lose_disk(at)
        await at.fail_over(PROMOTED)
        ended = await at.go_on()

        assert (began, ended.outcome) == (2, ProcedureOutcome.SUCCEEDED)
        assert at.jobs.began > began
        assert at.judge(ProcedureOutcome.SUCCEEDED, lambda end: over(change, end)) == []

    filling(scenario, with_copies)
