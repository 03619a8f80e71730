"""A region is led by another copy of its set, or goes on as it was: each refusal, and races."""

from typing import Any

import pytest

from keys.model.records import ProcedureOutcome
from keys.store.kv import Compare
from metasrv_base.errors import Refused, Unavailable
from procedures.kinds.failover.change_copies import ChangeCopies
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.failover.switch_leader import SWITCH_LEADER, SwitchLeader
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.serving import Opening
from tests.procedures.harness.copies.copied_tables import (
    with_a_lost_disk,
    with_a_node_that_starts_again,
    with_copied_table,
    with_three_in_sync,
)
from tests.procedures.harness.copies.switching import FIRST, SECOND, SWITCH, THIRD
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.placing.preferring import ELSEWHERE, leader_after, preferring
from tests.procedures.kinds.copies.copy_lives import Given, code_of, lives, regions, roles
from tests.procedures.kinds.failover.runs import ROOT, fail_over, outcome, start
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

SWITCHES = SWITCH_LEADER.name


def switch(**changes: Any) -> SwitchLeader:
    return SwitchLeader.model_validate({**SWITCH.model_dump(), **changes})


async def with_dn_3_dead(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-3"].die()


@pytest.mark.case("greptime 125")
def test_given_a_wanted_copy_when_switched_there_and_back_then_each_stays_in_the_set() -> None:
    ends, cluster = lives(
        (SWITCHES, switch(region_id=FIRST, to_node="dn-2")),
        (SWITCHES, switch(region_id=FIRST, to_node="dn-1", epoch=2)),
    )

    assert [code_of(end) for end in ends] == [None, None]
    region = regions(cluster)[0]
    assert (region["leader"], region["epoch"], region["state"]) == ("dn-1", 3, "open")
    assert roles(cluster, 0) == [("dn-2", "in-sync")]
    assert region["copies_version"] == 3
    assert ends[1].result == {
        "region_id": FIRST,
        "leader": "dn-1",
        "epoch": 3,
        "switched": True,
    }


def test_given_a_node_that_leads_already_when_switched_then_nothing_is_done() -> None:
    (end,), cluster = lives((SWITCHES, switch(to_node="dn-1")))

    assert end.result is not None
    assert end.result["switched"] is False
    assert regions(cluster)[1]["epoch"] == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"to_node": "dn-2"}, "node-not-eligible"),
        ({"to_node": "dn-9"}, "node-not-eligible"),
        ({"region_id": THIRD}, "node-not-eligible"),
        ({"region_id": FIRST, "spared": "dn-2"}, "node-not-eligible"),
        ({"epoch": 7}, "stale-epoch"),
        ({"region_id": str(int(THIRD) + 7)}, "not-found"),
        ({"table_id": 999}, "table-not-found"),
    ],
)
def test_given_a_copy_that_may_not_lead_when_switched_then_the_leader_leads_on(
    changes: dict[str, Any], code: str
) -> None:
    (end,), cluster = lives((SWITCHES, switch(**changes)))

    assert code_of(end) == code
    assert [region["epoch"] for region in regions(cluster)] == [1, 1, 1]
    assert not any(serving.holds for serving in cluster.plane.nodes["dn-1"].serving.values())


def test_given_a_copy_whose_node_has_just_died_when_switched_then_the_leader_leads_on() -> None:
    """Nobody has noticed yet: the copy does not get ready."""
    (end,), cluster = lives((SWITCHES, SWITCH), given=with_dn_3_dead)

    assert end.outcome is ProcedureOutcome.ROLLED_BACK
    assert end.last.error is not None
    assert end.last.error.code == "deadline-exceeded"
    assert regions(cluster)[1]["epoch"] == 1


@pytest.mark.case("greptime 121")
def test_given_another_copy_that_writes_no_files_then_the_wanted_one_leads_all_the_same() -> None:
    async def given(cluster: Cluster, fence: Compare) -> None:
        await with_three_in_sync(cluster, fence)
        cluster.plane.nodes["dn-3"].refuses["hand-over"] = Refused("invalid-request")

    (end,), cluster = lives((SWITCHES, switch(region_id=FIRST, to_node="dn-2")), given=given)

    assert code_of(end) is None
    assert (regions(cluster)[0]["leader"], regions(cluster)[0]["epoch"]) == ("dn-2", 2)


@pytest.mark.case("greptime 122")
def test_given_two_switches_of_one_epoch_then_the_second_finds_another_leader() -> None:
    ends, cluster = lives((SWITCHES, SWITCH), (SWITCHES, switch(region_id=SECOND)))

    assert [code_of(end) for end in ends] == [None, "stale-epoch"]
    assert regions(cluster)[1]["leader"] == "dn-3"
    assert regions(cluster)[1]["epoch"] == 2


@pytest.mark.parametrize("given", [with_a_lost_disk, with_a_node_that_starts_again])
def test_given_a_next_leader_that_cannot_open_when_switched_then_another_of_the_set_leads(
    given: Given,
) -> None:
    (end,), cluster = lives((SWITCHES, switch(region_id=FIRST, to_node="dn-2")), given=given)

    assert code_of(end) is None
    (region,) = regions(cluster)
    assert (region["leader"] != "dn-2", region["state"], region["epoch"]) == (True, "open", 3)
    assert ("dn-2", "learner") in roles(cluster, 0)
    assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())


def test_given_a_new_leader_that_dies_alone_in_its_set_then_a_failover_moves_its_rows() -> None:
    """A switch has nobody bring over what another leader would borrow, and waits for no lease."""
    leave = ChangeCopies(
        table_id=TABLE,
        name="t",
        region_id=FIRST,
        change="leave",
        node="dn-1",
        root=ROOT,
        epoch=2,
        version=2,
    )

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_next_leader_that_opens_late, {})
        procedure = await start(cluster, SWITCHES, switch(region_id=FIRST, to_node="dn-2"))
        while regions(cluster)[0]["epoch"] == 1:
            await cluster.clock.sleep_ms(50)
        end = await finish(cluster, "change_copies", leave, {})
        assert code_of(end) is None
        cluster.plane.nodes["dn-2"].die()
        await cluster.detected()
        await cluster.clock.sleep_ms(30_000)
        region = regions(cluster)[0]
        assert (region["leader"], region["epoch"], region["state"]) == ("dn-2", 2, "opening")
        assert await outcome(cluster, procedure) is None

        assert not await fail_over(cluster, "dn-2")

        region = regions(cluster)[0]
        assert (region["leader"] != "dn-2", region["epoch"]) == (True, 3)
        assert (region["state"], region.get("borrows", [])) == ("open", [])
        assert await outcome(cluster, procedure) is ProcedureOutcome.SUCCEEDED

    run(main, 1)


def test_given_a_next_leader_that_starts_again_when_the_other_loses_its_disk_then_it_leads() -> (
    None
):
    """Its process ends behind its first opening, so the former leader is to lead again."""

    async def given(cluster: Cluster, fence: Compare) -> None:
        await with_copied_table(cluster, fence)
        node = cluster.plane.nodes["dn-2"]
        node.dies_at, node.comes_back = Opening.MADE, True

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})
        procedure = await start(cluster, SWITCHES, switch(region_id=FIRST, to_node="dn-2"))
        while cluster.plane.nodes["dn-2"].dies_at is not None:
            await cluster.clock.sleep_ms(1)
        cluster.plane.storage.lost.add(ROOT)
        assert await cluster.quiet()

        region = regions(cluster)[0]
        assert (region["leader"], region["epoch"], region["state"]) == ("dn-2", 4, "open")
        assert roles(cluster, 0) == [("dn-1", "learner")], "it is lost"
        assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())
        assert await outcome(cluster, procedure) is ProcedureOutcome.SUCCEEDED

    run(main, 1)


def test_given_both_that_die_in_a_switch_then_the_one_that_comes_back_leads_and_none_borrows() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_next_leader_that_opens_late, {})
        former, target = cluster.plane.nodes["dn-1"], cluster.plane.nodes["dn-2"]
        await start(cluster, SWITCHES, switch(region_id=FIRST, to_node="dn-2"))
        while regions(cluster)[0]["epoch"] == 1:
            await cluster.clock.sleep_ms(50)
        former.refuses["open"] = Unavailable("not-ready")
        target.die()
        await cluster.detected()
        while regions(cluster)[0]["epoch"] == 2:
            await cluster.clock.sleep_ms(50)
        assert roles(cluster, 0) == [("dn-2", "in-sync")]

        former.die()
        await cluster.detected()
        await start(cluster, "failover_node", FailoverNode(node="dn-1", reason="silent"))
        await cluster.clock.sleep_ms(120_000)
        assert (regions(cluster)[0]["leader"], regions(cluster)[0]["epoch"]) == ("dn-1", 3)
        target.refuses.clear()
        target.alive = True
        await cluster.clock.sleep_ms(120_000)

        region = regions(cluster)[0]
        assert (region["leader"], region["state"]) == ("dn-2", "open")
        assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())

    run(main, 1)


async def with_a_next_leader_that_opens_late(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    cluster.plane.nodes["dn-2"].refuses["open"] = Unavailable("not-ready")


def test_given_a_preferred_zone_when_switched_without_a_target_then_its_copy_leads() -> None:
    first = switch(region_id=FIRST)

    assert leader_after(SWITCHES, first, preferring("dn-3")) == "dn-3"
    assert leader_after(SWITCHES, first, preferring(ELSEWHERE)) == "dn-2"


def test_given_a_target_that_has_lost_its_disk_when_switched_then_the_preferred_copy_leads() -> (
    None
):
    second = switch(region_id=FIRST, to_node="dn-2")

    assert leader_after(SWITCHES, second, preferring("dn-3", with_a_lost_disk)) == "dn-3"
    assert leader_after(SWITCHES, second, preferring(ELSEWHERE, with_a_lost_disk)) == "dn-1"
