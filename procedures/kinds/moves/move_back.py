"""The way back of a move of a copy: the source leads again, and the added copy goes.

An undo begins a few children of each kind, and then ends: a copy that stays, since it leads or is
needed by then, is one too many at most, and the loop that keeps the number of copies removes one.
"""

from collections.abc import AsyncIterator

from keys.model.tables import RegionRoute, TableInfo
from metasrv_base.errors import NotFound
from procedures.context import Context
from procedures.kinds.copies.remove_copy import REMOVE_COPY, refusal_of
from procedures.kinds.failover.switch_leader import SWITCH_LEADER
from procedures.kinds.moves.copy_move import (
    ChildNumber,
    Destination,
    MoveCopy,
    applied_region,
    has_succeeded,
    removal,
    root_on,
    run_child,
    switch_from,
)
from procedures.machine import Back
from procedures.steps.paged_children import child_id, rest_before_again

TRIES_MAX = 3  # children of one kind that an undo begins


async def lead_back(state: MoveCopy, context: Context) -> Back | None:
    """If the added copy leads, has another copy lead: the source, if it may."""
    if state.destination is Destination.MEMBER:
        return None
    async for number, _, region in _tries(state, context):
        if region.leader != state.to_node:
            return None
        is_able = state.from_node in region.in_sync and state.from_node in context.alive_nodes()
        to_node = state.from_node if is_able and not number else None
        change = switch_from(state, region, state.to_node, to_node)
        child = (number, ChildNumber.LEAD_BACK)
        await run_child(context, child, SWITCH_LEADER.name, change)
    return None


async def remove_added(state: MoveCopy, context: Context) -> Back | None:
    """Has a child remove the copy that this move has added. It stays if it leads, or if fewer
    copies would be in sync than before."""
    await context.children.at_most(0)
    added = child_id(context.procedure, state.rounds, ChildNumber.ADD)
    if state.to_root is None and not has_succeeded(await context.children.end_of(added)):
        return None
    async for number, info, region in _tries(state, context):
        root = root_on(region, state.to_node)
        if root is None:
            return None
        update = {"node": state.to_node, "root": root, "replaced_by": None}
        copy = removal(state).model_copy(update={**update, "least": state.in_sync})
        if refusal_of(info, region, copy, context.alive_nodes()) is not None:
            return None
        await run_child(context, (number, ChildNumber.REMOVE_ADDED), REMOVE_COPY.name, copy)
    return None


async def _tries(
    state: MoveCopy, context: Context
) -> AsyncIterator[tuple[int, TableInfo, RegionRoute]]:
    """The number of each try, with the region as it is then. Ends where the table is gone."""
    await context.children.at_most(0)
    for number in range(TRIES_MAX):
        if number:
            await rest_before_again(context, number)
        try:
            info, region = applied_region(state, context)
        except NotFound:
            return
        yield number, info, region
