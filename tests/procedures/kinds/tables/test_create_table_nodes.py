"""Nodes of a create that die, or are removed, before the table is published."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from keys.model.cluster import DATANODE, NodeKey
from keys.model.records import ProcedureOutcome
from keys.model.tables import TableInfoKey
from metasrv.nodes.status import KEPT_MS
from procedures.kinds.batch.batch import CommandBatch
from procedures.kinds.batch.members import Change
from procedures.kinds.failover.decommission_node import DecommissionNode
from procedures.kinds.registry import KINDS
from procedures.kinds.tables.create_table import CreateTable
from procedures.ports import NodeView
from tests.fakes.cluster import Cluster
from tests.fakes.hanging import hang
from tests.fakes.wire import NodeWire
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import with_schema, with_table
from tests.procedures.harness.tables import table_info, table_route
from tests.procedures.kinds.failover.runs import outcome, start
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

NEW = CreateTable(info=table_info(1090, "new", 2), route=table_route(1090, ("dn-1", "dn-2")))
LOST = DecommissionNode(node="dn-1", reason="its disk is gone", by="anna")


async def over(cluster: Cluster, procedure: str) -> ProcedureOutcome:
    while (end := await outcome(cluster, procedure)) is None:
        await cluster.clock.sleep_ms(10)
    return end


def is_stored(cluster: Cluster, key: NodeKey | TableInfoKey) -> bool:
    return bytes(key) in cluster.stored()


def created_late(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Cluster], Awaitable[None]]
) -> tuple[ProcedureOutcome, Cluster]:
    """A create of which dn-1 answers at once, and dn-2 behind *meanwhile*."""
    made: list[tuple[ProcedureOutcome, Cluster]] = []

    async def main(loop: SimLoop) -> None:
        cluster, answers, arrived = Cluster(loop, KINDS), asyncio.Event(), asyncio.Event()
        sound = NodeWire.handle_async_request

        async def late(wire: NodeWire, request: httpx.Request) -> httpx.Response:
            if request.url.host == "dn-2":
                arrived.set()
                await answers.wait()
            return await sound(wire, request)

        monkeypatch.setattr(NodeWire, "handle_async_request", late)
        await with_schema(cluster, await cluster.bootstrap())
        await cluster.started()
        procedure = await start(cluster, "create_table", NEW)
        await arrived.wait()
        await cluster.clock.sleep_ms(10)
        cluster.plane.nodes["dn-1"].die()
        await cluster.detected()
        await meanwhile(cluster)
        answers.set()
        made.append((await over(cluster, procedure), cluster))

    run(main, 1)
    return made[0]


async def removed(cluster: Cluster) -> None:
    procedure = await start(cluster, "decommission_node", LOST)
    assert await over(cluster, procedure) is ProcedureOutcome.SUCCEEDED
    assert not is_stored(cluster, NodeKey(DATANODE, "dn-1"))


async def nothing(cluster: Cluster) -> None:
    assert is_stored(cluster, NodeKey(DATANODE, "dn-1"))


def test_given_a_node_that_is_removed_before_the_table_is_published_then_nothing_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would ever fail over a region of a node that is gone."""
    end, cluster = created_late(monkeypatch, removed)

    assert end is ProcedureOutcome.ROLLED_BACK
    assert not is_stored(cluster, TableInfoKey(1090))


def test_given_a_node_that_has_only_died_before_the_table_is_published_then_it_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its failover follows."""
    end, cluster = created_late(monkeypatch, nothing)

    assert end is ProcedureOutcome.SUCCEEDED
    assert is_stored(cluster, TableInfoKey(1090))


async def with_nodes(loop: SimLoop) -> Cluster:
    cluster = Cluster(loop, KINDS)
    await with_schema(cluster, await cluster.bootstrap())
    await cluster.started()
    return cluster


@pytest.mark.parametrize("is_hung", [False, True])
def test_given_a_node_that_falls_before_it_answers_then_another_takes_its_region_in_seconds(
    is_hung: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is hung takes the request, and answers nothing: an order has 30 s."""
    sound = NodeWire.handle_async_request

    async def hanging(wire: NodeWire, request: httpx.Request) -> httpx.Response:
        if is_hung and request.url.host == "dn-1":
            await asyncio.Event().wait()
        return await sound(wire, request)

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        monkeypatch.setattr(NodeWire, "handle_async_request", hanging)
        cluster.plane.nodes["dn-1"].die()
        began_ms = cluster.clock.mono_ms()

        ended = await finish(cluster, "create_table", NEW, {})

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert [beat.step for beat in ended.last.timeline] == ["create", "create"]
        assert cluster.clock.mono_ms() - began_ms < 25_000
        assert served(cluster) == {("dn-3", 2), ("dn-2", 1)}

    run(main, 1)


def served(cluster: Cluster) -> set[tuple[str, int]]:
    """Nodes and epochs of regions that they lead."""
    nodes = cluster.plane.nodes.values()
    return {(node.node_id, held.epoch) for node in nodes for held in node.serving.values()}


def view_of(cluster: Cluster, name: str) -> NodeView:
    assert cluster.leader.book is not None
    (view,) = (view for view in cluster.leader.book.nodes() if view.node_id == name)
    return view


def test_given_a_node_whose_heartbeats_come_and_that_answers_no_order_then_another_is_taken() -> (
    None
):
    """One direction of its network is cut."""

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        cluster.plane.nodes["dn-1"].silent = True
        began_ms = cluster.clock.mono_ms()

        ended = await finish(cluster, "create_table", NEW, {})

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert cluster.clock.mono_ms() - began_ms < 50_000
        assert served(cluster) == {("dn-3", 2), ("dn-2", 1)}
        view = view_of(cluster, "dn-1")
        assert (view.alive, view.answers) == (True, False)
        cluster.plane.nodes["dn-1"].silent = False
        await cluster.clock.sleep_ms(KEPT_MS)
        assert view_of(cluster, "dn-1").answers, "it is tried again"

    run(main, 1)


def test_given_no_node_that_answers_when_they_do_again_then_the_table_is_made_once() -> None:
    """The network of the leader is cut for a while."""

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        for node in cluster.plane.nodes.values():
            node.silent = True
        procedure = await start(cluster, "create_table", NEW)
        await cluster.clock.sleep_ms(40_000)
        for node in cluster.plane.nodes.values():
            node.silent = False

        assert await over(cluster, procedure) is ProcedureOutcome.SUCCEEDED
        held = [region for node in cluster.plane.nodes.values() for region in node.serving]
        assert sorted(held) == [region.region_id for region in NEW.route.region_routes]

    run(main, 1)


def test_given_a_node_that_is_removed_while_it_is_ordered_then_its_leader_s_term_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = NodeWire.handle_async_request

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        leader, book = cluster.leader, cluster.leader.book
        assert book is not None

        async def removing(wire: NodeWire, request: httpx.Request) -> httpx.Response:
            if request.url.host == "dn-1":
                book._entries.pop("dn-1", None)
                raise httpx.ReadTimeout("test")
            return await sound(wire, request)

        monkeypatch.setattr(NodeWire, "handle_async_request", removing)

        ended = await finish(cluster, "create_table", NEW, {})

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert cluster.leader is leader
        assert {node for node, _ in served(cluster)} == {"dn-2", "dn-3"}

    run(main, 1)


def test_given_no_node_that_ever_answers_when_the_deadline_passes_then_it_is_undone() -> None:
    """The nodes are told by the answers to their heartbeats."""

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        for node in cluster.plane.nodes.values():
            node.silent = True
        began_ms = cluster.clock.mono_ms()

        ended = await finish(cluster, "create_table", NEW, {})

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert cluster.clock.mono_ms() - began_ms < 120_000, "no poison after ten minutes"

    run(main, 1)


async def reasons_of_undone_batch(cluster: Cluster) -> dict[str, str]:
    """Has a batch make the table NEW, which is undone; returns the reasons of the nodes."""
    state = NEW.model_dump(mode="json")
    batch = CommandBatch(members=(Change(kind="create_table", state=state),))

    ended = await finish(cluster, "batch", batch, {})

    assert ended.outcome is ProcedureOutcome.ROLLED_BACK
    assert ended.last.error is not None
    assert ended.last.error.code == "node-not-eligible"
    reasons: dict[str, str] = ended.last.error.facts["reasons"]
    return reasons


def test_given_a_batch_of_which_a_node_dies_first_then_it_is_undone_and_says_so() -> None:
    """Its commands may be in parts. Sent again, it is placed on nodes that live."""

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        cluster.plane.nodes["dn-1"].die()
        began_ms = cluster.clock.mono_ms()

        reasons = await reasons_of_undone_batch(cluster)

        assert "dn-1" in reasons
        assert cluster.clock.mono_ms() - began_ms < 15_000
        assert not any(node.serving for node in cluster.plane.nodes.values())

    run(main, 1)


def test_given_a_batch_of_which_a_node_answers_no_orders_then_it_is_undone_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answers to its heartbeats drop the region that it makes."""
    hung = hang(monkeypatch, "dn-1")

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        began_ms = cluster.clock.mono_ms()

        reasons = await reasons_of_undone_batch(cluster)

        assert reasons == {"dn-1": "it answers no orders"}
        assert cluster.clock.mono_ms() - began_ms < 40_000
        await hung.wake()
        await cluster.clock.sleep_ms(20_000)
        assert not any(node.serving for node in cluster.plane.nodes.values())

    run(main, 1)


def test_given_a_batch_when_no_node_answers_for_a_while_then_it_happens_once_they_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hung = hang(monkeypatch, "dn-1", "dn-2")

    async def main(loop: SimLoop) -> None:
        cluster = await with_nodes(loop)
        batch = CommandBatch(
            members=(Change(kind="create_table", state=NEW.model_dump(mode="json")),)
        )
        cluster.plane.nodes["dn-3"].die()
        procedure = await start(cluster, "batch", batch)
        await cluster.clock.sleep_ms(60_000)
        await hung.wake()

        assert await over(cluster, procedure) is ProcedureOutcome.SUCCEEDED

    run(main, 1)


def test_given_the_id_of_another_table_when_created_then_nothing_of_that_table_is_touched() -> None:
    """Ids are given once; a sequence that went back costs no table a region."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_table, {})
        before = history_of(cluster.kv._store.log_from(1))
        serving = [dict(node.serving) for node in cluster.plane.nodes.values()]
        folders = cluster.plane.storage.folders.keys() | set[str]()
        twice = CreateTable(
            info=table_info(TABLE, "z", 3), route=table_route(TABLE, ("dn-1", "dn-1", "dn-2"))
        )

        ended = await finish(cluster, "create_table", twice, {})

        after = history_of(cluster.kv._store.log_from(1))
        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert (after.versions, after.wrong) == (before.versions, [])
        assert [dict(node.serving) for node in cluster.plane.nodes.values()] == serving
        assert cluster.plane.storage.folders.keys() == folders

    run(main, 1)
