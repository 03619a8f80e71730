"""A node takes requests and answers none, while its heartbeats are heard: what does not need its
answer goes on without it, and ends as it ends otherwise."""

import pytest

from tests.fakes.hanging import hang
from tests.procedures.harness.copies.copied_scenarios import COPIED_SCENARIOS, MOVED
from tests.procedures.harness.copies.copied_tables import with_copied_table_and_dead_node
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.tables import region_ids
from tests.procedures.kinds.copies.copy_lives import regions
from tests.procedures.kinds.failover.runs import start
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

SCENARIOS = {scenario.name: scenario for scenario in COPIED_SCENARIOS}
LATE_MS = 2_100
"""The time that a round of orders takes, one of which is not answered."""


def lived(scenario: Scenario) -> tuple[str | None, int]:
    """Outcome of the procedure, and how long it took, in ms."""
    ends = list[tuple[str | None, int]]()

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, scenario.given, {})
        await cluster.detected()
        began_ms = cluster.clock.mono_ms()
        history = await finish(cluster, scenario.kind, scenario.state, {})
        ends.append((history.outcome, cluster.clock.mono_ms() - began_ms))

    run(main, 1)
    return ends[0]


@pytest.mark.parametrize(
    ("name", "node", "rounds"),
    [
        ("create_table, with copies", "dn-3", 1),
        ("create_table, a copy refuses", "dn-3", 1),
        ("batch, a copy refuses", "dn-3", 1),
        ("add_copy", "dn-1", 1),
        ("remove_copy", "dn-1", 1),
        ("switch_leader", "dn-2", 1),
        ("move_copy, of the leader", "dn-2", 2),
        ("undrop_table, with copies", "dn-2", 1),
        ("undrop_table, with copies", "dn-3", 1),
    ],
)
def test_given_a_node_that_answers_nothing_when_it_is_not_needed_then_it_is_waited_for_shortly(
    name: str, node: str, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, took_ms = lived(SCENARIOS[name])

    hang(monkeypatch, node)
    with_it, longer_ms = lived(SCENARIOS[name])

    assert with_it == outcome
    assert longer_ms <= took_ms + rounds * LATE_MS


def test_given_a_next_leader_that_answers_nothing_then_the_other_regions_of_the_table_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hang(monkeypatch, "dn-2")
    states = list[str]()

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_copied_table_and_dead_node, {})
        await cluster.detected()
        both = MOVED.model_copy(update={"region_ids": region_ids(TABLE, 2)})
        await start(cluster, "failover_table", both)
        await cluster.clock.sleep_ms(LATE_MS)
        states.extend(region["state"] for region in regions(cluster)[:2])

    run(main, 1)
    assert states == ["opening", "open"]
