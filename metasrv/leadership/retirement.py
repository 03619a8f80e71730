"""Nodes that do not return: marked offline, and removed once nothing names them any more.

A node is dead by the detector, offline when it has been dead for `safe_lost_time_ms`, and removed
after `node_retention_ms`; the times are counted from what is stored, so they survive the leader.
Wall clocks may be wrong: a leader that has heard the node counts its silence by its own monotonic
clock as well, and none removes a node before it has led for `safe_lost_time_ms`.
"""

from contextlib import suppress

import structlog

from keys.model.cluster import Removal
from metasrv.leadership.term import Term
from metasrv.nodes.claims import Claims, claims_on
from metasrv.nodes.status import GONE, NodeStatus
from metasrv_base.clock import Clock
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.errors import Conflict, NotFound, Unavailable, Unknown

EVERY_MS = 10_000

log = structlog.get_logger()


async def retirement(term: Term, clock: Clock) -> None:
    """Removes dead nodes, for ever. Every write is fenced like any other."""
    await term.ready.wait()
    while True:
        await clock.sleep_ms(EVERY_MS)
        with suppress(Unavailable, Unknown, Conflict, NotFound):  # the next look is soon enough
            await look(term, clock)


async def look(term: Term, clock: Clock) -> None:
    """Looks at every registered node, but not before the leader knows which of them are there
    (G33)."""
    if clock.mono_ms() < term.nodes.leases.quiet_until_ms:
        return
    for status in term.nodes.statuses():
        await _mark(term, status, clock)


async def _mark(term: Term, status: NodeStatus, clock: Clock) -> None:
    node, book, tuned = status.node, term.nodes, term.settings.values
    now_ms, mono_ms = clock.wall_ms(), clock.mono_ms()
    if status.state not in GONE or node.restored_from is not None:
        book.entry(node.node_id).is_offline = False
        if node.dead_since_ms is not None:
            await book.set_dead_since(node.node_id, None)
        return
    since_ms, silent_ms = node.dead_since_ms, book.entry(node.node_id).silent_ms(mono_ms)
    if since_ms is None:
        since_ms = now_ms - (silent_ms or 0)
        await book.set_dead_since(node.node_id, since_ms)
    dead_ms = now_ms - since_ms if silent_ms is None else min(now_ms - since_ms, silent_ms)
    book.entry(node.node_id).is_offline = dead_ms >= tuned.safe_lost_time_ms
    led_ms = mono_ms - book.leases.elected_at_ms
    is_over = dead_ms >= max(tuned.node_retention_ms, tuned.safe_lost_time_ms)
    if not is_over or led_ms < tuned.safe_lost_time_ms or term.settings.maintenance is not None:
        return
    if (await claims_of(term, status)).is_empty:
        reason = f"not heard for {dead_ms // 1000} s"
        removal = Removal(at_ms=now_ms, by="metasrv", reason=reason)
        await book.remove(node.node_id, removal, lambda: book.node(node.node_id).state in GONE)


async def claims_of(term: Term, status: NodeStatus) -> Claims:
    living = [(procedure, entry.held.record) for procedure, entry in term.manager.living()]
    return await by_turns(claims_on(status.node, term.nodes.follower.catalog, living))
