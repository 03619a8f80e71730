"""The node that gets a copy of a region: whether it may have it, and how far it is."""

from contextlib import suppress

from keys.model.tables import TableInfo
from metasrv_base.errors import Conflict, MetaError
from procedures.context import Context
from procedures.steps.placing import why_not

COPY_DEADLINE_MS = 86_400_000
"""The time for which rows may arrive: after it the added copy is removed."""
LOOK_MS = 500  # between two looks at the route, while the copy is brought up
LOOKS_A_QUESTION = 4  # looks at the route, for one question to the node how far its copy is


def root_at(node_id: str, info: TableInfo, context: Context) -> str:
    """The folder of the node. Raises Conflict("node-not-eligible")."""
    node_filter = context.ports.applied().placing.placement_of(info).node_filter
    for node in context.ports.placement.nodes():
        if node.node_id == node_id:
            reason = why_not(node, (), info.engine, node_filter)
            if reason is None:
                return node.root
            raise Conflict("node-not-eligible", node_id=node_id, reason=reason)
    raise Conflict("node-not-eligible", node_id=node_id, reason="not registered")


async def rest_while_fetched(context: Context, node: str, region_id: str, looks: int) -> None:
    """Rests until the next look at the route. *looks*: those so far, from 1 on."""
    with context.waiting_for("copy", f"{node}, which is to be in sync"):
        if looks % LOOKS_A_QUESTION == 0:
            await _tell_progress(context, node, region_id)
        await context.live.rest(LOOK_MS)


async def _tell_progress(context: Context, node: str, region_id: str) -> None:
    """Tells how many bytes of files have arrived. A node that does not answer may have its copy
    join all the same."""
    with suppress(MetaError):
        fetch = await context.ports.nodes.fetched(node, region_id)
        if fetch is not None:
            context.progress(fetch.bytes, fetch.bytes_total, "bytes")
