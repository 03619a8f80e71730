"""Regions whose rows ended with a process: called lost, in nobody's way, healed by a truncate."""

from dataclasses import replace
from typing import Any

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from keys.model.tables import RegionState
from metasrv_base.engines import MEMORY
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.failover.failover_plan import DrainTarget, reroute_plan
from procedures.kinds.failover.lose_regions import LoseRegions
from procedures.kinds.tables.truncate_table import TruncateTable
from procedures.ports import NodeView
from procedures.steps.placing import NodeRules, place
from tests.fakes.cluster import Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.online import ADDS
from tests.procedures.harness.tables import region_ids, table_route
from tests.procedures.kinds.memory_scenarios import (
    ON_FIRST,
    in_memory,
    with_lost_regions,
    with_new_process,
)
from tests.procedures.kinds.runs import begun, drop, finish
from tests.sim.loop import SimLoop, run

TRUNCATE = TruncateTable(catalog="main", schema_name="public", name="t", table_id=TABLE)


def view(name: str, *, alive: bool = True) -> NodeView:
    return NodeView(name, "a", f"/disks/{name}", alive, regions=0, disk_free_bytes=1 << 40)


def regions(cluster: Cluster) -> list[dict[str, Any]]:
    agreement = history_of(cluster.kv._store.log_from(1))
    found: list[dict[str, Any]] = agreement.family("__table_route")[(str(TABLE),)]["region_routes"]
    return found


def lose(**epochs: int) -> LoseRegions:
    ids = dict(zip(ON_FIRST, epochs.values(), strict=False))
    return LoseRegions(table_id=TABLE, name="main.public.t", node="dn-1", epochs=ids)


def test_given_a_report_of_another_epoch_when_said_then_the_region_stays_as_it_is() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_new_process, {})

        history = await finish(cluster, "lose_regions", lose(first=1, second=7), {})

        assert history.result is not None
        assert history.result["lost"] == [ON_FIRST[0]]
        assert [region["state"] for region in regions(cluster)] == ["lost", "open", "open"]

    run(main, 1)


def test_given_lost_regions_when_the_table_is_altered_then_it_ends_and_truncate_heals() -> None:
    """The alter has orders for living regions alone; what is made anew has the schema of then."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_lost_regions, {})

        altered = await finish(cluster, "alter_table", ADDS, {"table_id": TABLE})
        healed = await finish(cluster, "truncate_table", TRUNCATE, {"table_id": TABLE})

        assert (altered.outcome, healed.outcome) == (ProcedureOutcome.SUCCEEDED,) * 2
        folders = [cluster.plane.storage.folders[region["root"]] for region in regions(cluster)]
        assert {len(folder.columns) for folder in folders} == {3}
        assert [region["state"] for region in regions(cluster)] == ["open"] * 3
        assert await cluster.quiet()

    run(main, 1)


def test_given_a_process_that_ends_behind_a_truncate_when_leased_then_the_route_says_lost() -> None:
    """Nothing waits for it, so that another truncate can come."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_lost_regions, {})
        node = cluster.plane.nodes["dn-1"]
        node.refuses["open"] = Unavailable("region-lost")

        history = await finish(cluster, "truncate_table", TRUNCATE, {"table_id": TABLE})
        states = [region["state"] for region in regions(cluster)]
        node.refuses.clear()
        await finish(cluster, "truncate_table", TRUNCATE, {"table_id": TABLE})

        assert history.outcome is ProcedureOutcome.SUCCEEDED
        assert states == ["lost", "lost", "open"]
        assert [region["state"] for region in regions(cluster)] == ["open"] * 3

    run(main, 1)


def test_given_a_drain_when_rows_are_in_memory_then_they_stay_and_the_table_is_named() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, in_memory, {})

        drained = await finish(
            cluster, "failover_node", FailoverNode(node="dn-1", reason="a new disk"), {}
        )

        assert drained.result == {"node": "dn-1", "moves": 0, "left": [TABLE], "left_count": 1}
        assert [region["leader"] for region in regions(cluster)] == ["dn-1", "dn-1", "dn-2"]

    run(main, 1)


def test_given_lost_regions_when_dropped_then_nothing_waits_for_them() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_lost_regions, {})

        history: ProcedureHistory = await finish(cluster, "drop_table", drop(), {"table_id": TABLE})

        assert history.outcome is ProcedureOutcome.SUCCEEDED

    run(main, 1)


def test_given_nodes_without_the_engine_then_none_takes_its_regions_and_each_says_why() -> None:
    nodes = [view("dn-1"), view("dn-2", alive=False)]

    with pytest.raises(Unavailable) as refusal:
        place(nodes, 1, rules=NodeRules(MEMORY))

    assert refusal.value.facts["reasons"] == {
        "dn-1": "without the engine memory",
        "dn-2": "not alive",
    }


def test_given_regions_in_memory_then_only_those_of_dead_nodes_leave() -> None:
    route = table_route(TABLE, ("dn-1", "dn-2"))
    nodes = [view("dn-1"), view("dn-2", alive=False), view("dn-3")]
    able = [replace(node, engines=(MEMORY,)) for node in nodes]

    plan = reroute_plan(route, able, DrainTarget("dn-1", region_ids(TABLE, 2), engine=MEMORY))

    assert [one.led_by for one in plan] == ["dn-2"]
    assert plan[0].region.state is RegionState.OPENING
