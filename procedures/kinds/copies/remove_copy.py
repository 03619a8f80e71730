"""remove_copy: removes a copy that a region does not need, and then its folder.

The copy is removed from the route; then an order tells the leader, which requires the copy until
then (docs/protocols.md P5.10), and the node deletes the folder. A leader that will be alone in its
set is told before, too, and must answer. A copy of the set is removed only if the table's number of
copies is in sync without it, on nodes that live, so its replacement has joined before; a move names
that replacement. A copy that may lead if the leader is lost (P5.12) stays as long as it may.
"""

from collections.abc import Collection
from functools import partial
from operator import is_, not_

from pydantic import Field

from keys.commit.change import change, route_changed
from keys.model.records import Lock, Resource
from keys.model.tables import (
    CopyRole,
    RegionRoute,
    TableInfo,
    TableInfoKey,
    TableRouteKey,
)
from metasrv_base.errors import Conflict, NotFound
from procedures.context import Context
from procedures.locking.locks import route_key, shared
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.copies.copy_leavings import delete_left
from procedures.steps.copies.copy_orders import CopyTarget, announce_leave, tell_leader
from procedures.steps.copies.copy_routes import eligible_refusal, must_have_region, without_copy


class RemoveCopy(ProcedureState):
    table_id: int
    name: str
    region_id: str
    node: str
    root: str
    """The root of the copy: another disk of its node is another copy."""
    reason: str
    forced: bool = False
    """An operator wants it, for that reason, also if fewer copies are in sync then than the table
    is to have, and if it is one that may lead."""
    replaced_by: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The root of the copy that was added for it (move_copy), which must be in the set. None: no
    copy was."""
    gone: bool = Field(default=False, exclude_if=not_)
    """The node of the copy is gone for good, by the word of an operator: it gives no promise."""
    least: int | None = Field(default=None, exclude_if=partial(is_, None))
    """Copies that must be in sync without it; None: as many as the table is to have."""


async def leave(state: RemoveCopy, context: Context) -> Outcome[RemoveCopy]:
    """Removes the copy from the route; does nothing if the route does not name it.

    Raises NotFound for a table or region that is gone, Conflict("action-not-allowed") for a copy
    that leads, or that is needed, and Unavailable while a leader that it leaves alone does not
    answer.
    """
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        raise NotFound("table-not-found", table_id=state.table_id)
    region = must_have_region(route, state.region_id)
    if state.root not in region.roots:
        return Goto("delete", state)
    must_be_free(info, region, state, context.alive_nodes())
    changed = without_copy(region, state.root)
    if len(changed.in_sync) == 1 < len(region.in_sync) and not state.gone:
        await announce_leave(context, info, region)
    return Goto("delete", state, change(snapshot.only(key), route_changed(route, (changed,))))


def must_be_free(
    info: TableInfo, region: RegionRoute, state: RemoveCopy, alive: Collection[str]
) -> None:
    """Raises Conflict("action-not-allowed") for a copy that leads, or that is needed."""
    refusal = refusal_of(info, region, state, alive)
    if refusal is not None:
        facts = {"action": "remove_copy", "state": refusal}
        raise Conflict("action-not-allowed", region_id=region.region_id, **facts)


def refusal_of(
    info: TableInfo, region: RegionRoute, state: RemoveCopy, alive: Collection[str]
) -> str | None:
    """The reason for which the copy stays; None: it may go. A copy in sync on a node that is not
    *alive* does not count as one that is left: it is about to leave the set, and may be lost."""
    if region.root == state.root:
        return "it leads the region"
    in_set = {region.root: region.leader}
    in_set |= {copy.root: copy.node for copy in region.copies if copy.role is CopyRole.IN_SYNC}
    if state.replaced_by is not None and state.replaced_by not in in_set:
        return "the copy in its place is not in sync"
    if not state.forced and (refusal := eligible_refusal(region, state.root)) is not None:
        return refusal
    needed = info.replicas if state.least is None else state.least
    left = sum(node in alive for root, node in in_set.items() if root != state.root)
    if state.root in in_set and left < needed and not state.forced:
        return f"{left} of {needed} copies would be in sync on living nodes"
    return None


async def delete(state: RemoveCopy, context: Context) -> Outcome[RemoveCopy]:
    """Tells the leader, and has the node close the copy and delete its folder. The folder stays if
    the node is gone. A node that has another copy of the region by now keeps that one open."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        return _over(state, 0, ())  # the folders of a dropped table go with it
    region = must_have_region(route, state.region_id)
    if state.root in region.roots:
        return _over(state, region.copies_version, ())
    await tell_leader(context, info, region)
    stays = await delete_left(context, CopyTarget(info, region, state.node, state.root))
    return _over(state, region.copies_version, stays)


def _over(state: RemoveCopy, version: int, stays: list[str] | tuple[str, ...]) -> Done[RemoveCopy]:
    result = {"region_id": state.region_id, "copies_version": version, "stays": list(stays)}
    return Done(state, result)


def locks(state: RemoveCopy) -> tuple[Lock, ...]:
    return (shared(route_key(state.table_id)),)


def resource(state: RemoveCopy) -> Resource:
    return Resource.table(state.table_id, state.name)


REMOVE_COPY = Kind(
    name="remove_copy",
    state=RemoveCopy,
    steps={
        "leave": Step(leave, to=frozenset({"delete"})),
        "delete": Step(delete),
    },
    no_return="leave",
    locks=locks,
    resource=resource,
    success=200,
    lane=AdmissionLane.REPAIR,
)
