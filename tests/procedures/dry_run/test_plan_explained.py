"""Explanations of a plan beyond its effects: waits, reads, durations, the last step that can be
cancelled."""

from collections.abc import Awaitable, Callable

from procedures.dry_run.dry_run import DryRunRequest, dry_run
from procedures.dry_run.estimates import Estimates, Rate, RegionSize
from procedures.dry_run.plan import Obstacle, Plan
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    DropColumnOperation,
    Operation,
    RenameColumnOperation,
)
from procedures.kinds.alter.alter_table import ALTER_TABLE
from procedures.kinds.alter.index_kinds import CREATE_INDEX
from procedures.kinds.registry import KINDS
from tests.fakes.cluster import Cluster
from tests.fakes.holders import LEASE_MS
from tests.procedures.dry_run.clients import CLIENT
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.online import ALTERS, INDEXES, with_rows, with_wide_table
from tests.procedures.harness.tables import region_ids
from tests.sim.loop import SimLoop, run

ADD = AddColumnOperation(name="seats", type="int32", nullable=False, default=100)
(REGION,) = region_ids(TABLE, 1)


def planned(
    attempt: DryRunRequest,
    given: Callable[[Cluster], None] = lambda cluster: None,
    estimates: Estimates | None = None,
    before: Callable[..., Awaitable[None]] = with_wide_table,
) -> Plan:
    async def main(loop: SimLoop) -> Plan:
        cluster = Cluster(loop, KINDS)
        await before(cluster, await cluster.bootstrap())
        server = await cluster.started()
        given(cluster)
        await cluster.detected()
        return await dry_run(KINDS, attempt, server.manager._ports, estimates or Estimates())

    return run(main, 1)


def alter(*operations: Operation) -> DryRunRequest:
    return DryRunRequest(ALTER_TABLE, ALTERS.model_copy(update={"operations": operations}), CLIENT)


def test_given_a_change_when_planned_then_versions_and_waits_are_in_their_steps() -> None:
    plan = planned(alter(ADD), lambda cluster: cluster.holders.uses("fe-1", TABLE, 9))

    made = [(step.step, one) for step in plan.steps for one in step.publishes]
    assert [(step, one.schema_version) for step, one in made] == [
        ("advance", 2),
        ("advance", 3),
        ("commit", 4),
    ]
    assert [(s.name, s.before, s.after) for _, one in made for s in one.shifts] == [
        ("seats", "absent", "delete-only"),
        ("seats", "delete-only", "write-only"),
        ("seats", "write-only", "public"),
    ]
    waits = [(step.step, one.schema_version) for step in plan.steps for one in step.drains]
    assert waits == [("advance", 2), ("advance", 3), ("finish", 4)]
    assert (plan.blockers, plan.eta_ms, plan.ends) == ([], 0, True)


def test_given_names_defaults_and_options_beside_a_change_when_planned_then_they_are_told() -> None:
    plan = planned(alter(*ALTERS.operations))
    alone = planned(alter(RenameColumnOperation(name="note", new_name="text")))

    told = [
        (step.step, one.what, one.name, one.attribute, one.before, one.after)
        for step in plan.steps
        for one in step.edits
    ]
    renamed = ("commit", "column", "note", "name", "note", "text")
    assert told == [
        ("commit", "table", "main.public.t", "option a", None, "1"),
        renamed,
        ("commit", "column", "note", "default", None, "none"),
    ]
    edits = [one.attribute for step in alone.steps for one in step.edits]
    assert edits == ["name"]


def test_given_the_steps_of_a_plan_then_those_before_no_return_can_be_cancelled_and_no_others() -> (
    None
):
    plan = planned(alter(ADD, DropColumnOperation(name="size")))

    can = [(step.step, step.cancellable) for step in plan.steps]
    last_undoable = [step for step, _ in can].index(plan.last_cancellable_step)
    assert {is_so for _, is_so in can[: last_undoable + 1]} == {True}
    assert {is_so for _, is_so in can[last_undoable + 1 :]} == {False}
    assert can[last_undoable + 1 :] != []


def test_given_a_transaction_in_the_way_when_planned_then_it_is_named_once_and_counted_once() -> (
    None
):
    plan = planned(alter(ADD), lambda cluster: cluster.holders.uses("fe-1", TABLE, 0))

    (blocker,) = plan.blockers
    assert (blocker.kind, blocker.holder) == (Obstacle.SCHEMA_LEASE, "fe-1")
    assert (blocker.transaction, blocker.expires_in_ms) == ("t-1", LEASE_MS)
    assert [step.eta_ms for step in plan.steps if step.eta_ms] == [LEASE_MS]
    assert plan.eta_ms == LEASE_MS
    followers = {one.holders for step in plan.steps for one in step.drains}
    assert followers == {("fe-1",)}


def test_given_rows_when_an_index_is_planned_then_they_are_counted_and_timed() -> None:
    sizes = {("dn-1", REGION): RegionSize(250_000, 4_000_000)}
    estimates = Estimates(lambda node, region: sizes.get((node, region)), Rate(50_000, 2))

    plan = planned(
        DryRunRequest(CREATE_INDEX, INDEXES, CLIENT), estimates=estimates, before=with_rows
    )

    scans = [(step, scan) for step in plan.steps for scan in step.scans]
    ((step, scan),) = scans
    assert (scan.job, scan.region_id, scan.rows, scan.bytes) == (
        "backfill",
        REGION,
        250_000,
        4_000_000,
    )
    assert (step.eta_ms, plan.eta_ms, step.cancellable) == (5_000, 5_000, True)
    assert plan.ends


def test_given_a_region_that_nobody_reported_when_planned_then_its_size_is_not_told() -> None:
    plan = planned(DryRunRequest(CREATE_INDEX, INDEXES, CLIENT), before=with_rows)

    ((scan,),) = [step.scans for step in plan.steps if step.scans]
    assert (scan.rows, scan.bytes, plan.eta_ms) == (None, None, 0)


def test_given_an_obstacle_that_has_no_end_when_planned_then_nobody_knows_how_long() -> None:
    def dies(cluster: Cluster) -> None:
        cluster.plane.nodes["dn-1"].die()

    plan = planned(alter(ADD), dies)

    assert [one.kind for one in plan.blockers] == [Obstacle.NODE]
    assert (plan.eta_ms, plan.ends) == (None, False)
