"""A datanode that dies at any call of a life: rows stay, and somebody serves them in the end."""

from collections.abc import Sequence

import pytest

from keys.model.records import ProcedureOutcome
from tests.crash.enumeration import life, submit
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.serving import Opening
from tests.fakes.faults import Mode, Plan
from tests.procedures.harness.agree import Agreement, history_of
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS
from tests.procedures.harness.tables import rows_of
from tests.procedures.kinds.failover.runs import fail_over
from tests.sim.loop import SimLoop, run

pytestmark = pytest.mark.crash

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
LIVES = [
    ("create_table", "dn-3"),
    ("create_table, name taken", "dn-3"),
    ("drop_table", "dn-2"),
    ("purge_table", "dn-1"),
    ("undrop_table", "dn-1"),
    ("undrop_table", "dn-2"),
    ("undrop_table, node gone", "dn-2"),
    ("undrop_table, node gone", "dn-3"),
    ("failover_table", "dn-2"),
    ("failover_table", "dn-3"),
    ("failover_node", "dn-3"),
]


@pytest.mark.parametrize(("name", "victim"), LIVES)
def test_given_a_node_that_dies_at_any_call_when_over_then_every_row_is_served(
    name: str, victim: str
) -> None:
    scenario = BY_NAME[name]
    calls = life(scenario, None).calls

    wrong = [
        (at, calls[at], found) for at in range(len(calls)) if (found := death(scenario, at, victim))
    ]

    assert wrong[:3] == []


@pytest.mark.parametrize(("name", "victim"), [("failover_table", "dn-3")])
def test_given_a_node_that_comes_back_at_once_when_rerouting_then_its_regions_open(
    name: str, victim: str
) -> None:
    scenario = BY_NAME[name]
    calls = life(scenario, None).calls

    wrong = [
        (at, calls[at], found)
        for at in range(len(calls))
        if (found := death(scenario, at, victim, back_after_ms=300))
    ]

    assert wrong[:3] == []


FOUR_MORE = ("dn-4", "dn-5", "dn-6", "dn-7")


@pytest.mark.parametrize("wipes", [False, True], ids=["disks stay", "disks are gone"])
@pytest.mark.parametrize("second", Opening)
@pytest.mark.parametrize("third", Opening)
def test_given_the_second_and_third_opener_that_die_at_any_stage_when_over_then_rows_are_served(
    second: Opening, third: Opening, wipes: bool
) -> None:
    """The disk of one that has answered stays: it is announced, as far as the leader knows."""
    assert openers_die((second, third), wipes=wipes) == []


def openers_die(stages: Sequence[Opening], *, wipes: bool) -> list[str]:
    return run(lambda loop: _openers_die(loop, stages, wipes), 1)


async def _openers_die(loop: SimLoop, stages: Sequence[Opening], wipes: bool) -> list[str]:
    scenario = BY_NAME["failover_table"]
    cluster = Cluster(loop)
    await scenario.given(cluster, await cluster.bootstrap())
    plane = cluster.plane
    plane.add(*FOUR_MORE)
    plane.openers_die, plane.wipes_unannounced = list(stages), wipes
    server = await cluster.started("meta-1")
    await submit(cluster, server, scenario)
    wrong = [] if await cluster.quiet() else [f"never ends: {cluster.living()}"]
    dead = [name for name, node in plane.nodes.items() if not node.alive]
    if len(dead) != 1 + len(stages):
        wrong.append(f"who died is {dead}")
    for name in dead:
        wrong += await fail_over(cluster, name)
    agreement = history_of(cluster.kv._store.log_from(1))
    wrong += [*agreement.wrong, *cluster.violations, *plane.violations]
    return wrong + _served(cluster, agreement)


def death(
    scenario: Scenario, at: int, victim: str, *, back_after_ms: int | None = None
) -> list[str]:
    return run(lambda loop: _death(loop, scenario, at, victim, back_after_ms), at)


async def _death(
    loop: SimLoop, scenario: Scenario, at: int, victim: str, back_after_ms: int | None
) -> list[str]:
    cluster = Cluster(loop)
    await scenario.given(cluster, await cluster.bootstrap())
    node = cluster.plane.nodes[victim]
    plan = Plan(at, Mode.NODE_DIES, node)
    server = await cluster.started("meta-1", plan)
    plan.armed = True
    await submit(cluster, server, scenario)
    while back_after_ms is not None and not plan.happened:
        await cluster.clock.sleep_ms(20)
    if back_after_ms is not None:
        await cluster.clock.sleep_ms(back_after_ms)
        node.alive = True
    wrong = [] if await cluster.quiet() else [f"never ends: {cluster.living()}"]
    if not node.alive:
        wrong += await fail_over(cluster, victim)
    agreement = history_of(cluster.kv._store.log_from(1))
    wrong += [*agreement.wrong, *cluster.violations, *cluster.plane.violations]
    return wrong + _served(cluster, agreement)


def _served(cluster: Cluster, agreement: Agreement) -> list[str]:
    wrong = []
    for route in agreement.family("__table_route").values():
        for region in route["region_routes"]:
            node = cluster.plane.nodes[region["leader"]]
            if not node.alive or region["state"] != "open" or region["borrows"]:
                wrong.append(f"route {region}")
            if route["table_id"] in (TABLE, OTHER):
                found = cluster.plane.rows(region["region_id"])
                if found != rows_of(region["region_id"]) and not _came_back(cluster, region):
                    wrong.append(f"rows {found} of {region}")
    outcomes = {v["outcome"] for v in agreement.family("__procedure_history").values()}
    legal = {str(ProcedureOutcome.SUCCEEDED), str(ProcedureOutcome.ROLLED_BACK)}
    return wrong if outcomes <= legal else [*wrong, f"outcomes {outcomes}"]


def _came_back(cluster: Cluster, region: dict[str, str]) -> bool:
    """A node that was away a moment has its files; the next heartbeat's answer opens it again."""
    held = cluster.plane.storage.folders.get(region["root"])
    return held is not None and held.rows == rows_of(region["region_id"])
