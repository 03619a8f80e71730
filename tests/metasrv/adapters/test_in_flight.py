"""Requests to a node that is dead, removed or started again are given up, and no others."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from keys.model.cluster import Removal
from metasrv.adapters.http_nodes import HttpNodes
from metasrv_base.errors import MetaError, Unknown
from metasrv_base.wire.node.orders import OrderResult
from tests.metasrv.adapters.order_lines import NODE, NodeBehind, by, create, lines
from tests.metasrv.nodes.leader import beat, registration
from tests.sim.loop import SimLoop, run

Change = Callable[[HttpNodes], Awaitable[None]]
SILENT_MS = 20_000
"""After which a node is dead."""
WAITED_S = 3.0


async def dies(nodes: HttpNodes) -> None:
    await nodes.book.clock.sleep_ms(SILENT_MS)


async def starts_again(nodes: HttpNodes) -> None:
    await nodes.book.register(registration(NODE, "i-2"))
    nodes.book.heartbeat(beat(1, incarnation="i-2"))


async def is_removed(nodes: HttpNodes) -> None:
    await nodes.book.remove(NODE, Removal(at_ms=1, by="anna", reason="old", lost=True))


async def beats(nodes: HttpNodes) -> None:
    nodes.book.heartbeat(beat(2))


async def beats_late(nodes: HttpNodes) -> None:
    await nodes.book.clock.sleep_ms(SILENT_MS)
    nodes.book.heartbeat(beat(2))


async def sent(nodes: HttpNodes, place: int) -> tuple[OrderResult, ...] | MetaError:
    try:
        return await nodes.send(NODE, [create(place)], sender=by(place))
    except MetaError as error:
        return error


def waited(change: Change) -> tuple[list[tuple[OrderResult, ...] | MetaError], NodeBehind]:
    """The outcomes of an order that the node does not answer before *change*, if it has one some
    seconds after that, and of another, which it answers at once."""
    ends: list[tuple[list[tuple[OrderResult, ...] | MetaError], NodeBehind]] = []

    async def main(loop: SimLoop) -> None:
        loop.thread_ms = lambda: 0
        async with lines() as (nodes, node), asyncio.TaskGroup() as tasks:
            node.gate.clear()
            first = tasks.create_task(sent(nodes, 0))
            await node.came.wait()
            await change(nodes)
            over, _ = await asyncio.wait([first], timeout=WAITED_S)
            outcomes = [await task for task in over]
            node.gate.set()
            await first
            if change is not is_removed:
                outcomes.append(await sent(nodes, 1))
            ends.append((outcomes, node))

    run(main, 1)
    return ends[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dies, "it is dead"),
        (starts_again, "another process of it has registered"),
        (is_removed, "it was removed"),
    ],
)
def test_given_an_order_in_flight_when_its_node_is_gone_then_its_outcome_is_unknown_in_seconds(
    change: Change, reason: str
) -> None:
    (first, *_), _ = waited(change)

    assert isinstance(first, Unknown)
    assert first.code == "outcome-unknown"
    assert first.facts["reason"] == reason


@pytest.mark.parametrize("change", [beats, beats_late])
def test_given_an_order_in_flight_when_its_node_lives_then_it_is_waited_for(change: Change) -> None:
    ((second,), node) = waited(change)

    assert isinstance(second, tuple)
    assert node.sizes() == [1, 1], "nothing is sent twice"


@pytest.mark.parametrize("change", [dies, starts_again])
def test_given_an_order_that_was_given_up_then_the_next_has_an_answer_of_its_own(
    change: Change,
) -> None:
    """A node that is dead may be reached all the same, and answers at once."""
    (_, second), node = waited(change)

    assert isinstance(second, tuple)
    assert [result.region_id for result in second] == [node.requests[1].orders[0].region_id]


def test_given_a_node_that_is_gone_when_an_order_was_given_up_then_it_is_not_called_silent() -> (
    None
):
    """Once it is back it takes orders."""

    async def main(loop: SimLoop) -> None:
        loop.thread_ms = lambda: 0
        async with lines() as (nodes, node), asyncio.TaskGroup() as tasks:
            node.gate.clear()
            first = tasks.create_task(sent(nodes, 0))
            await node.came.wait()
            await dies(nodes)
            assert isinstance(await first, Unknown)
            nodes.book.heartbeat(beat(2))

            assert nodes.book.entry(NODE).order_silence is None

    run(main, 1)
