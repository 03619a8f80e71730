"""Regions of new tables with copies: which answers make them, and what the route says then."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from keys.model.records import ClientRequirements
from keys.model.tables import TableRoute
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.node.orders import Order, OrderResult
from procedures.context import Context
from procedures.ports import Sender
from procedures.steps.copies import new_regions
from procedures.steps.copies.new_regions import NewTable, drop_new_regions, make_regions
from procedures.steps.region_orders import LATE_ANSWERS_MS
from tests.fakes.cluster import Cluster
from tests.fakes.faulty_ports import FaultyNodes
from tests.procedures.harness.copies.creating import OF_THREE, OF_TWO, creation, with_nodes
from tests.procedures.kinds.runs import begun, context
from tests.sim.loop import SimLoop, run

CLIENT = ClientRequirements(submitted_by="anna", request_id="r", statement={})
THREE, TWO = (NewTable(state.info, state.route) for state in (creation(OF_THREE), creation(OF_TWO)))
REFUSED = Refused("invalid-request", reason="test")


def lived(life: Callable[[Cluster, Context], Awaitable[None]]) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_nodes, {})
        await life(cluster, context(cluster, CLIENT, "create"))

    run(main, 1)


def roles(route: TableRoute) -> list[dict[str, str]]:
    return [{copy.node: copy.role.value for copy in each.copies} for each in route.region_routes]


def open_at(cluster: Cluster) -> dict[str, int]:
    """Regions and copies that each node has open."""
    nodes = cluster.plane.nodes.values()
    return {node.node_id: len(node.serving) + len(node.following) for node in nodes}


def test_given_all_that_answer_when_made_then_the_route_is_as_planned() -> None:
    async def life(cluster: Cluster, at: Context) -> None:
        assert await make_regions(at, [THREE]) == (THREE.route,)
        assert open_at(cluster) == {"dn-1": 2, "dn-2": 2, "dn-3": 2}
        assert await make_regions(at, [THREE]) == (THREE.route,), "the same orders again"

    lived(life)


@pytest.mark.parametrize("fault", ["refuses", "silent"])
def test_given_a_majority_that_answers_when_made_then_the_others_are_learners(fault: str) -> None:
    async def life(cluster: Cluster, at: Context) -> None:
        node = cluster.plane.nodes["dn-3"]
        node.silent = fault == "silent"
        node.refuses = {"create": REFUSED} if fault == "refuses" else {}

        (route,) = await make_regions(at, [THREE])

        assert roles(route) == [
            {"dn-2": "in-sync", "dn-3": "learner"},
            {"dn-1": "in-sync", "dn-3": "learner"},
        ]
        assert [region.copies_version for region in route.region_routes] == [2, 2]
        assert route.format == THREE.route.format

    lived(life)


@pytest.mark.parametrize(
    ("late", "answer_ms", "made_ms", "others"),
    [
        ("dn-3", 30_000, LATE_ANSWERS_MS, "learner"),
        ("dn-3", 1_000, 1_000, "in-sync"),
        ("dn-1", 5_000, 5_000, "in-sync"),
    ],
    ids=["a copy", "a copy that comes in time", "a leader"],
)
def test_given_a_node_that_answers_late_then_it_is_waited_for_as_long_as_a_region_needs_it(
    late: str, answer_ms: int, made_ms: int, others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def life(cluster: Cluster, at: Context) -> None:
        in_time = FaultyNodes.send

        async def send(
            nodes: FaultyNodes, node: str, orders: Sequence[Order], *, sender: Sender
        ) -> tuple[OrderResult, ...]:
            await cluster.clock.sleep_ms(answer_ms if node == late else 0)
            return await in_time(nodes, node, orders, sender=sender)

        monkeypatch.setattr(FaultyNodes, "send", send)
        began_ms = at.ports.clock.mono_ms()

        (route,) = await make_regions(at, [THREE])

        assert at.ports.clock.mono_ms() - began_ms == made_ms
        assert {each["dn-3"] for each in roles(route)} == {others}
        assert at.live.waits == ()

    lived(life)


@pytest.mark.parametrize(
    ("table", "node"),
    [(THREE, "dn-1"), (THREE, "dn-2"), (TWO, "dn-3")],
    ids=["a leader of one", "a leader of the other", "half of the copies"],
)
@pytest.mark.parametrize("fault", ["refuses", "silent"])
def test_given_no_leader_or_no_majority_when_made_then_refused_with_that_region(
    table: NewTable, node: str, fault: str
) -> None:
    async def life(cluster: Cluster, at: Context) -> None:
        there = cluster.plane.nodes[node]
        there.silent = fault == "silent"
        there.refuses = {"create": REFUSED} if fault == "refuses" else {}

        with pytest.raises(Unavailable) as refused:
            await make_regions(at, [table])

        assert (refused.value.code == "order-refused") == (fault == "refuses")
        assert node in str(refused.value.facts) or fault == "refuses"

    lived(life)


def test_given_many_regions_when_made_then_the_copies_of_one_are_of_one_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(new_regions, "ORDERS_AT_ONCE_MAX", 1)

    async def life(cluster: Cluster, at: Context) -> None:
        cluster.plane.nodes["dn-3"].refuses["create"] = REFUSED

        (route,) = await make_regions(at, [THREE])

        assert [each["dn-3"] for each in roles(route)] == ["learner", "learner"]
        assert (at.live.done, at.live.total, at.live.unit) == (1, 2, "regions")

    lived(life)


def test_given_copies_that_were_made_when_dropped_then_living_nodes_have_none() -> None:
    async def life(cluster: Cluster, at: Context) -> None:
        await make_regions(at, [THREE])
        cluster.plane.nodes["dn-3"].die()
        await cluster.detected()

        await drop_new_regions(at, [THREE])

        assert open_at(cluster) == {"dn-1": 0, "dn-2": 0, "dn-3": 0}
        assert {root.split("/")[2] for root in cluster.plane.storage.folders} == {"dn-3"}

    lived(life)
