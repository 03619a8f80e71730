"""The plan of a dry run against the run itself: timeline, keys, log and node calls, of every kind.

The keys are those of the store's own revisions, the orders those that arrived at the nodes.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from keys.model.families import family_of
from keys.model.log import CatalogUpdateKey, CatalogVersionKey
from keys.model.records import IdempotencyKey, ProcedureHistoryKey, ProcedureKey, ProcedureOutcome
from procedures.dry_run.dry_run import DryRunRequest, dry_run
from procedures.dry_run.estimates import Estimates, RegionSize, SizeOf
from procedures.dry_run.plan import Obstacle, Plan
from procedures.kinds.registry import KINDS
from tests.crash.enumeration import submit
from tests.fakes.cluster import Cluster
from tests.keys.model.plain import plain
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.scenario import Scenario, submission
from tests.procedures.harness.scenarios import SCENARIOS
from tests.sim.loop import SimLoop, run

# The committer's and the record's own keys: their names hold numbers that no plan can know.
OWN = (CatalogUpdateKey, CatalogVersionKey, ProcedureKey, ProcedureHistoryKey, IdempotencyKey)
PLAIN = [one for one in SCENARIOS if one.cancel_after_ms is None]
MOVES = [one.name for one in SCENARIOS if one.kind in ("move_copy", "move_dropped", "drain_node")]
UNFORESEEN = {
    "truncate_table, a copy refuses": {"orders"},  # more of them to the node that refused
    # of the failover that runs beside it
    "decommission_node, with copies": {"steps", "writes", "orders"},
    # the request of a leader that a copy joins; the orders that follow from it
    **{name: {"writes", "orders"} for name in MOVES},
    **{  # once more, for its next epoch
        f"{kind}, the next leader starts again": {"steps", "writes", "log", "orders"}
        for kind in ("failover_table, with copies", "switch_leader")
    },
}
"""Fields of `Seen` that no plan can know, by scenario: they depend on answers, or on timing."""

REFUSED = {"switch_leader, the leader refuses"}
"""Scenarios that end because a node refuses."""

Named = tuple[str, ...]


@dataclass
class Seen:
    """The effects that a plan lists, or that a run had."""

    steps: list[Named] = field(default_factory=list)
    """Steps of every procedure of the family, sorted."""
    writes: Counter[Named] = field(default_factory=Counter)
    log: Counter[str] = field(default_factory=Counter)
    orders: Counter[Named] = field(default_factory=Counter)
    versions: list[tuple[int, int, Any]] = field(default_factory=list)
    """Published: table, schema version, and the elements that it moves."""
    drains: list[tuple[int, int]] = field(default_factory=list)
    """Waited for: table, schema version; by table, since children run side by side."""


def planned(plan: Plan) -> Seen:
    steps = [step for one in plan.family for step in one.steps]
    return Seen(
        steps=sorted(tuple(step.step for step in one.steps) for one in plan.family),
        writes=Counter(
            [("put", key) for step in steps for key in step.puts]
            + [("delete", key) for step in steps for key in step.deletes]
        ),
        log=Counter(op for step in steps for op in step.log),
        orders=Counter((one.node, one.op, one.region_id) for step in steps for one in step.orders),
        versions=[
            (one.table_id, one.schema_version, [s.model_dump(mode="json") for s in one.shifts])
            for step in steps
            for one in step.publishes
        ],
        drains=by_table(
            (one.table_id, one.schema_version) for step in steps for one in step.drains
        ),
    )


def done(cluster: Cluster, since: int) -> Seen:
    seen = Seen(orders=orders_of_procedures(cluster))
    for entry in cluster.kv._store.log_from(since):
        for event in entry.events:
            if family_of(event.key) not in OWN:
                how = "delete" if event.value is None else "put"
                seen.writes[how, event.key.decode()] += 1
    agreement = history_of(cluster.kv._store.log_from(1))
    made = [ops for procedure, ops in agreement.effects.items() if procedure is not None]
    seen.log = Counter(op for ops in made for op in ops)
    histories = agreement.family("__procedure_history").values()
    seen.steps = sorted(tuple(b["step"] for b in one["last"]["timeline"]) for one in histories)
    waited = cluster.holders.waited
    seen.drains = by_table((table, version) for table, version in waited if version is not None)
    seen.versions = [
        (one["table_id"], one["schema_version"], one["shifts"])
        for history in histories
        for one in history["last"]["transitions"]
    ]
    return seen


def orders_of_procedures(cluster: Cluster) -> Counter[Named]:
    """The instructions of heartbeats are nobody's orders."""
    told = cluster.plane.told
    sent = ((node, order) for node, order in told if order.sender is not None)
    return Counter((node, order.op, order.region_id) for node, order in sent)


def by_table(drains: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """In their order within each table."""
    return sorted(drains, key=lambda one: one[0])


def sizes(cluster: Cluster) -> SizeOf:
    """As if every node had just reported."""

    def size_of(node: str, region_id: str) -> RegionSize | None:
        entry = cluster.plane.nodes.get(node)
        held = entry and entry.serving.get(region_id)
        if not held:
            return None
        rows = len(cluster.plane.storage.folders[held.root].rows)
        return RegionSize(rows, rows)

    return size_of


async def both(loop: SimLoop, scenario: Scenario) -> tuple[Plan, Seen, dict[str, Any]]:
    cluster = Cluster(loop, KINDS)
    await scenario.given(cluster, await cluster.bootstrap())
    server = await cluster.started()
    await cluster.detected()
    before = cluster.stored()

    attempt = DryRunRequest(KINDS[scenario.kind], scenario.state, submission(scenario))
    plan = await dry_run(KINDS, attempt, server.manager._ports, Estimates(sizes(cluster)))

    assert cluster.stored() == before, "a dry run stores nothing"
    assert not orders_of_procedures(cluster), "a dry run tells no node"
    since = max(item.mod_revision for item in cluster.kv.dump()) + 1
    await submit(cluster, server, scenario)
    assert await cluster.quiet()
    histories = history_of(cluster.kv._store.log_from(1)).family("__procedure_history")
    ((procedure,),) = [id for id, one in histories.items() if one["last"]["parent"] is None]
    root = {**histories[procedure,], "locks": locks_at_first(cluster, procedure)}
    return plan, done(cluster, since), root


def locks_at_first(cluster: Cluster, procedure: str) -> Any:
    """The locks that were submitted: a batch gives its own up before its end."""
    key = bytes(ProcedureKey(procedure))
    events = (event for entry in cluster.kv._store.log_from(1) for event in entry.events)
    first = next(event for event in events if event.key == key)
    assert first.value is not None
    return plain(key, first.value)["locks"]


@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_given_a_plan_when_the_procedure_runs_then_it_does_that_and_nothing_else(
    scenario: Scenario,
) -> None:
    plan, seen, root = run(lambda loop: both(loop, scenario), 1)

    if root["outcome"] == ProcedureOutcome.SUCCEEDED:
        assert plan.ends
        unknown = {name: getattr(seen, name) for name in UNFORESEEN.get(scenario.name, ())}
        assert replace(planned(plan), **unknown) == seen
        assert [lock.model_dump(mode="json") for lock in plan.locks] == root["locks"]
        assert plan.resource.model_dump(mode="json") == root["last"]["resource"]
        assert plan.last_cancellable_step in {step.step for step in plan.steps}
    elif not plan.ends:
        (blocker,) = plan.blockers
        assert (blocker.kind, blocker.waits) == (Obstacle.REFUSED, False)
        assert blocker.holder == root["last"]["error"]["code"]
        assert seen.writes == Counter()
    else:
        is_late = scenario.deadline_ms is not None
        assert is_late or scenario.name in REFUSED, "only what a node says cannot be foreseen"


def test_given_the_kinds_then_each_has_a_plan_that_was_run() -> None:
    assert {scenario.kind for scenario in PLAIN} == KINDS.keys()
