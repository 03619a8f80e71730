"""Nodes that do not return, under wall clocks that are wrong."""

from metasrv.leadership.retirement import look
from metasrv.nodes.status import NodeState
from tests.metasrv.api.rig import Server, beat, leader, registration

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MONTH_MS = 30 * 24 * HOUR_MS


async def passed(one: Server, ms: int) -> NodeState | None:
    """Returns the state of dn-2, which is silent, once the ticker has looked; None: it has been
    removed. The other node is heard."""
    one.clock.ahead_ms += ms
    book = one.term.nodes
    book.heartbeat(beat("dn-1", book.entry("dn-1").sequence + 1))
    await look(one.term, one.clock)
    states = {status.node.node_id: status.state for status in book.statuses()}
    return states.get("dn-2")


async def test_given_a_wall_clock_a_month_ahead_then_a_node_that_died_now_is_merely_dead() -> None:
    async with leader(nodes=2) as one:
        one.term.nodes.heartbeat(beat("dn-2"))
        states = [await passed(one, MINUTE_MS)]

        one.clock.wall_ahead_ms = MONTH_MS
        states += [await passed(one, ms) for ms in (1, HOUR_MS, MONTH_MS)]

        assert states == [NodeState.DEAD, NodeState.DEAD, NodeState.OFFLINE, None]


async def test_given_a_new_process_that_is_never_heard_then_it_is_silent_since_it_registered() -> (
    None
):
    async with leader(nodes=2) as one:
        one.term.nodes.heartbeat(beat("dn-2"))
        states = [await passed(one, HOUR_MS)]

        await one.term.nodes.register(registration("dn-2", incarnation="i-2"))
        states.append(await passed(one, MINUTE_MS))

        assert states == [NodeState.OFFLINE, NodeState.DEAD]


async def test_given_a_new_leader_whose_wall_clock_is_ahead_then_it_removes_none_at_once() -> None:
    async with leader(nodes=2) as one:
        await passed(one, MINUTE_MS)
        for status in one.term.nodes.statuses():
            one.term.nodes.entry(status.node.node_id).is_met = False  # as loaded by a new leader

        one.clock.wall_ahead_ms = MONTH_MS
        states = [await passed(one, ms) for ms in (1, HOUR_MS)]

        assert states == [NodeState.OFFLINE, None]


async def test_given_this_server_stood_still_then_no_node_was_silent_meanwhile() -> None:
    async with leader(nodes=2) as one:
        one.term.nodes.heartbeat(beat("dn-2"))
        one.clock.ahead_ms += HOUR_MS
        one.term.nodes.forgive(HOUR_MS)

        states = [await passed(one, MINUTE_MS), await passed(one, HOUR_MS)]

        assert states == [NodeState.DEAD, NodeState.OFFLINE]
