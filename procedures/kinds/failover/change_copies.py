"""change_copies: adds a copy to the set of its region, or removes it, as the leader has asked.

One route transaction, which compares the route (docs/protocols.md P5.10). A leader requires a copy
from before it asks that the copy joins until it has read a route without it. So the leader requires
at least the set, before the transaction and after it. No node is asked: the leader learns the
result by the answer to its request, or by the answer to its next heartbeat.

It takes no lock of the region: a failover of the table may run for as long as rows are moved, and
a region whose set could not shrink meanwhile would take no writes. A request that a failover has
overtaken is refused by its epoch and version.
"""

from functools import partial
from operator import is_, not_
from typing import Literal

from pydantic import Field

from keys.commit.change import change, route_changed
from keys.commit.txn import NOTHING, Txn
from keys.model.records import Lock, Resource
from keys.model.tables import (
    CopyRole,
    RegionCopy,
    RegionRoute,
    RegionState,
    TableInfoKey,
    TableRouteKey,
)
from metasrv_base.errors import Conflict, NotFound
from procedures.context import Context
from procedures.locking.locks import route_key, shared
from procedures.machine import AdmissionLane, Done, Kind, Outcome, ProcedureState, Step
from procedures.quorum import min_in_sync, reached
from procedures.steps.copies.copy_routes import must_have_region
from procedures.steps.copies.dropped_regions import dropped_region, is_awake

ROLES = {"join": CopyRole.IN_SYNC, "leave": CopyRole.LEARNER}


class ChangeCopies(ProcedureState):
    table_id: int
    name: str
    region_id: str
    change: Literal["join", "leave"]
    node: str
    root: str
    """The root of the copy: another disk of its node is another copy."""
    epoch: int
    """The epoch of the leader that asks."""
    version: int
    """The version of the copies that it has computed from."""
    eligible: bool = Field(default=False, exclude_if=not_)
    """The leader knows that a copy which leaves has all that it opened its epoch with, and all that
    counts: if the set is below the minimum then, that copy may lead (docs/protocols.md P5.12)."""
    reason: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The reason in the words of the leader, for the history."""


async def set_role(state: ChangeCopies, context: Context) -> Outcome[ChangeCopies]:
    """Changes the role of the copy in the route. Raises NotFound for a table that is purged, and
    Conflict: `stale-epoch` for a former leader, `version-mismatch` if the copies have changed,
    `action-not-allowed` where a copy is to join a leader that does not serve yet."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        return await _set_role_of_dropped(state, context)
    region = must_have_region(route, state.region_id)
    changed = with_role(region, state, min_in_sync(info))
    txn = NOTHING
    if changed != region:
        _must_be_open(region, state)
        txn = change(snapshot.only(key), route_changed(route, (changed,)))
    return _done(state, changed, txn)


def _must_be_open(region: RegionRoute, state: ChangeCopies) -> None:
    """A leader that is alone until the route says that it serves has acknowledged nothing, and may
    be replaced by the one before (former_leader.py). Nobody joins it before that; it asks again."""
    if state.change == "join" and region.state is not RegionState.OPEN:
        facts = {"region_id": region.region_id, "action": "join"}
        raise Conflict("action-not-allowed", state=f"the region is {region.state}", **facts)


async def _set_role_of_dropped(state: ChangeCopies, context: Context) -> Outcome[ChangeCopies]:
    """The same of a region of a dropped table, which a move has woken. Raises as `set_role`."""
    dropped = await dropped_region(context, state.table_id, state.region_id)
    if dropped is None or not is_awake(dropped.region):
        raise NotFound("table-not-found", table_id=state.table_id)
    changed = with_role(dropped.region, state, min_in_sync(dropped.info))
    return _done(state, changed, NOTHING if changed == dropped.region else dropped.changed(changed))


def _done(state: ChangeCopies, region: RegionRoute, txn: Txn) -> Done[ChangeCopies]:
    version = region.copies_version
    result: dict[str, object] = {"region_id": state.region_id, "copies_version": version}
    if is_eligible(region, state.root):
        result["eligible"] = True
    return Done(state, result, txn)


def with_role(region: RegionRoute, state: ChangeCopies, minimum: int) -> RegionRoute:
    """The route of the region once it is done; *region* itself if it was done before. Raises as
    `set_role`.

    With the copy that makes as many in sync as *minimum*, the table's, no lower minimum counts any
    more. That is one more version: the leader learns the minimum by an order. Once the set has its
    minimum no copy is eligible any more, in the same transaction.
    """
    if region.epoch != state.epoch:
        facts = {"epoch": state.epoch, "current_epoch": region.epoch}
        raise Conflict("stale-epoch", region_id=region.region_id, **facts)
    role = ROLES[state.change]
    name = state.node, state.root
    roles = {(copy.node, copy.root): copy.role for copy in region.copies}
    done = state.version + 1, state.version + 2
    if region.copies_version in done and roles.get(name) is role:
        return region  # the same request, sent again
    if region.copies_version != state.version or name not in roles:
        facts = {"expected": state.version, "found": region.copies_version}
        raise Conflict("version-mismatch", region_id=region.region_id, **facts)
    count = sum(each is CopyRole.IN_SYNC for each in {**roles, name: role}.values()) + 1
    is_below = count < (region.min_in_sync or minimum)
    is_marked = is_below and state.eligible and state.change == "leave"
    is_marked = is_marked and region.state is RegionState.OPEN and roles[name] is CopyRole.IN_SYNC
    epoch = region.epoch if is_marked else None
    changed = RegionCopy(node=state.node, root=state.root, role=role, eligible_epoch=epoch)
    rest = region.copies if is_below else region.without_eligible().copies
    copies = tuple(changed if copy.root == state.root else copy for copy in rest)
    return reached(region.with_copies(copies), minimum)


def is_eligible(region: RegionRoute, root: str) -> bool:
    """Whether the copy in *root* may lead, although it is not in the set."""
    return any(copy.root == root for copy in region.eligible)


def locks(state: ChangeCopies) -> tuple[Lock, ...]:
    return (shared(route_key(state.table_id)),)


def resource(state: ChangeCopies) -> Resource:
    return Resource.table(state.table_id, state.name)


CHANGE_COPIES = Kind(
    name="change_copies",
    state=ChangeCopies,
    steps={"set_role": Step(set_role)},
    no_return="set_role",
    locks=locks,
    resource=resource,
    success=200,
    lane=AdmissionLane.REPAIR,
)
