"""Failover where it is hard: storage that is gone, nodes that come back, jobs that fail, undrop."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from keys.commit.txn import snapshot
from keys.model.records import ProcedureHistory, ProcedureOutcome
from keys.model.tables import TableRouteKey
from keys.store.kv import Compare
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from procedures.context import Context
from procedures.engine.control import Command, Control
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.kinds.registry import KINDS
from procedures.machine import Goto, Outcome
from procedures.ports import Progress
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.datanodes.plane import FakeJobs, Plane
from tests.fakes.datanodes.serving import Opening
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    copied_info,
    copied_route,
    put_copied_table,
    with_a_lost_disk,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import MOVED, with_dead_node, with_dropped_table
from tests.procedures.harness.tables import put_schema, region_ids, reserve_ids, rows_of
from tests.procedures.kinds.copies.copy_lives import lives
from tests.procedures.kinds.failover.runs import CLIENT, FIRST, ROOT, start
from tests.procedures.kinds.runs import begun, context, finish, move_route, undrop
from tests.sim.loop import SimLoop, run


def routes(cluster: Cluster) -> list[dict[str, Any]]:
    route = history_of(cluster.kv._store.log_from(1)).family("__table_route")[(str(TABLE),)]
    return list(route["region_routes"])


def states(cluster: Cluster) -> list[str]:
    return [region["state"] for region in routes(cluster)]


def leaders(cluster: Cluster) -> list[str]:
    """Returns the leaders of the regions that move."""
    return [one["leader"] for one in routes(cluster) if one["region_id"] in MOVED.region_ids]


@pytest.mark.case("greptime 77")
def test_given_storage_that_is_gone_when_failed_over_then_lost_until_it_is_back() -> None:
    """State `lost`, no empty region, and putting the storage back heals it."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dead_node, {})
        cluster.plane.storage.lost.add(ROOT)
        procedure = await start(cluster, "failover_table", MOVED)

        await cluster.clock.sleep_ms(120_000)
        assert states(cluster) == ["lost", "open", "open"]
        assert cluster.plane.rows(FIRST) is None
        assert cluster.living() == [procedure]

        cluster.plane.storage.lost.clear()
        assert await cluster.quiet()
        assert states(cluster) == ["open", "open", "open"]
        assert cluster.plane.rows(FIRST) == rows_of(FIRST)
        assert history_of(cluster.kv._store.log_from(1)).wrong == []

    run(main, 1)


def test_given_lost_storage_when_the_leader_dies_then_the_next_one_heals_it() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dead_node, {})
        cluster.plane.storage.lost.add(ROOT)
        await start(cluster, "failover_table", MOVED)
        await cluster.clock.sleep_ms(30_000)
        loop.kill(cluster.leader.node)
        cluster.plane.storage.lost.clear()

        assert await cluster.quiet()
        assert cluster.plane.rows(FIRST) == rows_of(FIRST)

    run(main, 1)


def test_given_jobs_that_fail_when_moved_then_another_attempt_is_adopted() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dead_node, {})
        cluster.jobs.failures = 3

        history = await finish(cluster, "failover_table", MOVED, {})

        assert history.outcome is ProcedureOutcome.SUCCEEDED
        assert cluster.plane.rows(FIRST) == rows_of(FIRST)
        assert cluster.plane.violations == []
        assert history.result is not None
        assert (history.result["rows_in"], history.result["rows_out"]) == (4, 4)

    run(main, 1)


class HeldMoves(FakeJobs):
    """Jobs that have written what they write, and do not end before they may."""

    def __init__(self, plane: Plane) -> None:
        super().__init__(plane)
        self.may_end = asyncio.Event()

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        found = await super().move(job, progress=progress)
        await self.may_end.wait()
        return found


async def with_held_moves(cluster: Cluster, fence: Compare) -> None:
    cluster.jobs = HeldMoves(cluster.plane)
    await with_dead_node(cluster, fence)


def test_given_a_job_that_has_written_when_paused_and_resumed_then_another_folder_is_adopted() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_held_moves, {})
        procedure = await start(cluster, "failover_table", MOVED)
        await cluster.clock.sleep_ms(60_000)
        manager = cluster.leader.manager
        assert dict(manager.living())[procedure].held.record.step == "move"

        for control in (Control.PAUSE, Control.RESUME):
            await manager.control(procedure, Command(control, by="ops"))
        assert isinstance(cluster.jobs, HeldMoves)
        cluster.jobs.may_end.set()

        assert await cluster.quiet()
        assert cluster.plane.rows(FIRST) == rows_of(FIRST)
        assert cluster.plane.violations == []

    run(main, 1)


def test_given_two_nodes_that_fail_in_turn_then_who_is_back_serves_what_it_lost() -> None:
    """The second one goes while Spark brings over what the first one had."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_held_moves, {})
        first, second, third = (cluster.plane.nodes[f"dn-{number}"] for number in (1, 2, 3))
        third.die()
        procedure = await start(cluster, "failover_table", MOVED)
        await cluster.clock.sleep_ms(60_000)
        assert leaders(cluster) == ["dn-2"] * len(MOVED.region_ids)

        first.alive = True
        second.die()
        assert isinstance(cluster.jobs, HeldMoves)
        cluster.jobs.may_end.set()
        ended = await cluster.leader.manager.wait(procedure, deadline_ms=600_000)

        assert isinstance(ended, ProcedureHistory)
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert leaders(cluster) == ["dn-1"] * len(MOVED.region_ids)
        assert cluster.plane.rows(FIRST) == rows_of(FIRST)
        assert cluster.plane.violations == []

    run(main, 1)


def test_given_a_lease_of_the_dead_node_then_nothing_opens_before_its_end() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dead_node, {})
        await start(cluster, "failover_table", MOVED)
        ends_at = max(cluster.plane.leases.values())

        await cluster.clock.sleep_ms(5_000)
        entry = cluster.leader.manager.living()[0][1]
        assert cluster.plane.rows(FIRST) is None
        assert [one.kind for one in entry.live.waiting] == ["region_lease"]

        assert await cluster.quiet()
        assert cluster.clock.mono_ms() >= ends_at
        assert cluster.plane.violations == []

    run(main, 1)


def test_given_force_then_the_regions_open_at_once() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dead_node, {})

        forced = MOVED.model_copy(update={"force": True})
        await start(cluster, "failover_table", forced)
        await cluster.clock.sleep_ms(1_000)

        assert cluster.plane.rows(FIRST) == rows_of(FIRST)

    run(main, 1)


def test_given_a_node_that_is_back_when_rerouted_again_then_its_regions_are_opened() -> None:
    """Between `open`, which saw it gone, and `reroute`, which sees it alive."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dead_node, {})
        at = context(cluster, CLIENT, "reroute")
        first = await FAILOVER_TABLE.steps["reroute"].act(MOVED, at)
        assert isinstance(first, Goto)
        await cluster.change(cluster.leader.fence, first.txn)

        again = await FAILOVER_TABLE.steps["reroute"].act(first.state, at)

        assert isinstance(again, Goto)
        assert again.step == "await_lease"
        assert again.state.to_move == first.state.moving
        assert again.txn.entries == ()

    run(main, 1)


def test_given_a_new_leader_that_dies_when_rerouted_again_then_its_lease_is_waited_for_too() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dead_node, {})
        at = context(cluster, CLIENT, "reroute")
        first = await FAILOVER_TABLE.steps["reroute"].act(MOVED, at)
        assert isinstance(first, Goto)
        await cluster.change(cluster.leader.fence, first.txn)
        cluster.plane.nodes["dn-3"].die()
        await cluster.detected()

        again = await FAILOVER_TABLE.steps["reroute"].act(first.state, at)

        assert isinstance(again, Goto)
        assert again.state.led_by == ("dn-1", "dn-3")

    run(main, 1)


# ---- undrop


def test_given_a_node_that_goes_while_its_table_comes_back_then_its_regions_move() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table, {})
        cluster.plane.nodes["dn-1"].silent = True  # alive for the leader when it publishes
        request = SubmitRequest(cluster.ids.procedure_id(), CLIENT, "")
        await cluster.leader.manager.submit(KINDS["undrop_table"], undrop(), request)
        await cluster.clock.sleep_ms(2_000)
        cluster.plane.nodes["dn-1"].die()

        assert await cluster.quiet()
        assert states(cluster) == ["open", "open", "open"]
        assert cluster.plane.rows(FIRST) == rows_of(FIRST)
        assert cluster.plane.violations == []

    run(main, 1)


@pytest.mark.case("greptime 38")
@pytest.mark.slow
def test_given_no_node_to_take_them_when_undropped_then_it_waits_and_then_goes_on() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table, {})
        for name in ("dn-1", "dn-2", "dn-3"):
            cluster.plane.nodes[name].die()
        request = SubmitRequest(cluster.ids.procedure_id(), CLIENT, "")
        await cluster.leader.manager.submit(KINDS["undrop_table"], undrop(), request)
        await cluster.clock.sleep_ms(2 * FAILOVER_TABLE.deadline_ms)  # its children have failed

        cluster.plane.nodes["dn-3"].alive = True

        assert await cluster.quiet()
        assert states(cluster) == ["open", "open", "open"]
        assert cluster.plane.rows(FIRST) == rows_of(FIRST)
        key = TableRouteKey(TABLE)
        seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
        assert {region.leader for region in seen.must(key).region_routes} == {"dn-3"}

    run(main, 1)


@pytest.mark.case("greptime 50")
def test_given_another_failover_that_waits_when_a_table_comes_back_then_both_end() -> None:
    """The undrop's own child and the detector's failover want the same regions."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table, {})
        cluster.plane.nodes["dn-1"].die()

        undropped, moved = await asyncio.gather(
            finish(cluster, "undrop_table", undrop(), {}),
            finish(cluster, "failover_table", MOVED, {}),
        )

        assert undropped.last.submission < moved.last.submission
        assert {undropped.outcome, moved.outcome} == {ProcedureOutcome.SUCCEEDED}
        assert states(cluster) == ["open", "open", "open"]
        assert cluster.plane.violations == []

    run(main, 1)


def test_given_a_route_that_moves_while_it_is_rerouted_then_it_is_read_again_and_left() -> None:
    """The transaction compares the route that the new leaders were chosen for (P1.1)."""
    moved: list[int] = []

    async def main(loop: SimLoop) -> None:
        async def reroute(state: FailoverTable, at: Context) -> Outcome[FailoverTable]:
            outcome = await FAILOVER_TABLE.steps["reroute"].act(state, at)
            if not moved:
                moved.append(1)
                await move_route(cluster)
            return outcome

        sound = FAILOVER_TABLE.steps["reroute"]
        slow = {**FAILOVER_TABLE.steps, "reroute": replace(sound, act=reroute)}
        kinds = {"failover_table": replace(FAILOVER_TABLE, steps=slow)}
        cluster = await begun(loop, with_dead_node, kinds)

        history = await finish(cluster, "failover_table", MOVED, {})

        assert history.result == {"table_id": TABLE, "regions": []}
        assert [(one["leader"], one["epoch"]) for one in routes(cluster)] == [("dn-3", 2)] * 3
        assert history_of(cluster.kv._store.log_from(1)).wrong == []

    run(main, 1)


def test_given_a_promoted_copy_whose_disk_is_lost_when_failed_over_then_another_of_the_set_leads() -> (  # noqa: E501
    None
):
    state = MOVED.model_copy(update={"region_ids": (FIRST,), "targets": ("dn-2",)})

    (end,), cluster = lives((FAILOVER_TABLE.name, state), given=with_a_lost_disk)

    assert end.outcome is ProcedureOutcome.SUCCEEDED
    assert leaders(cluster) == ["dn-3"]
    assert states(cluster) == ["open"]
    assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())


async def with_sets_of_three(cluster: Cluster, fence: Compare) -> None:
    """dn-1, which leads both regions, is dead, and so is dn-3; dn-2 dies in its first opening."""
    cluster.plane.add("dn-1", "dn-2", "dn-3", "dn-4")
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    copies = [(("dn-2", IN_SYNC), (other, IN_SYNC)) for other in ("dn-3", "dn-4")]
    route = copied_route(TABLE, ("dn-1", "dn-1"), copies)
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 2, 3), route)
    for node in ("dn-1", "dn-3"):
        cluster.plane.nodes[node].die()
    cluster.plane.nodes["dn-2"].dies_at = Opening.ASKED


def test_given_a_region_of_whose_set_nobody_lives_then_the_others_of_its_table_open() -> None:
    state = MOVED.model_copy(update={"region_ids": region_ids(TABLE, 2), "targets": ("dn-2",)})

    def led(cluster: Cluster) -> list[tuple[str, str]]:
        return [(region["leader"], region["state"]) for region in routes(cluster)]

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_sets_of_three, {})
        await cluster.detected()
        await start(cluster, "failover_table", state)

        await cluster.clock.sleep_ms(120_000)
        assert led(cluster) == [("dn-2", "opening"), ("dn-4", "open")]

        cluster.plane.nodes["dn-3"].alive = True
        assert await cluster.quiet()
        assert led(cluster) == [("dn-3", "open"), ("dn-4", "open")]

    run(main, 1)
