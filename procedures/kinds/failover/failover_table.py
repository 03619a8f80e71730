"""failover_table: moves regions of one table from a node (docs/protocols.md P5).

`reroute` names new leaders, one epoch higher, which borrow the old roots. After the old leases have
ended, these open the regions in place and serve. Spark copies the borrowed files; one manifest
adopts them, a second route transaction ends the borrowing, and only then is the old folder deleted.

A region with another copy in its set is led by that copy next, which has every row: it opens at
once, and nothing is borrowed or moved (P5.11). An eligible copy does the same for a leader that was
alone in its set (P5.12), but opens after the lease of that one.

A region of a volatile engine has no files to open: the new leaders fence the old roots, the route
says `lost`, and the procedure ends. A truncate gives empty regions (docs/decisions/0236).
"""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from operator import not_

from pydantic import Field

from keys.commit.change import change, route_changed
from keys.commit.txn import Snapshot, Txn
from keys.model.records import Lock, Resource
from keys.model.tables import RegionRoute, RegionState, TableInfoKey, TableRouteKey
from metasrv_base.engines import LSM
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from metasrv_base.wire.node.orders import AdoptFiles, DataFile
from procedures.context import Context
from procedures.kinds.failover.failover_plan import DrainTarget, Rerouted, reroute_plan
from procedures.kinds.failover.former_leader import FormerLeader, noted
from procedures.locking.locks import exclusive, region_key, route_key, shared
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.open_and_publish import grant, open_and_announce
from procedures.steps.region_cleanup import discard_roots, leaving, outwait_leases
from procedures.steps.region_orders import UNNUMBERED, order_one

LOOK_MS = 1_000  # between two looks at the leaders of regions, while Spark works


class Adoption(ProcedureState):
    """Files that Spark has written for one region, until its leader has taken them."""

    region_id: str
    attempt: str
    files: tuple[dict[str, object], ...]


class FailoverTable(ProcedureState):
    table_id: int
    name: str
    source: str
    """The node they leave."""
    region_ids: tuple[str, ...]
    reason: str
    force: bool = False
    """Do not wait for the old leases: the takeover rules alone protect the rows (P4)."""
    targets: tuple[str, ...] = ()
    """Nodes the operator wants; empty: any."""
    expected_epoch: int | None = None
    moving: tuple[str, ...] = ()
    """Regions that this procedure has rerouted."""
    led_by: tuple[str, ...] = ()
    """Nodes it took them from: the source, and new leaders that died in their turn."""
    leavings: tuple[str, ...] = ()
    """`region_id root` pairs: folders to delete once nothing borrows them."""
    promoted: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Regions of `moving` that a copy of their set leads now: no lease to wait for, and no move."""
    leased: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Regions of `promoted` whose leader before was alone in its set: its lease is waited for."""
    former: tuple[FormerLeader, ...] = Field(default=(), exclude_if=not_)
    """Leaders replaced by copies which have not served yet: they lead again if those are lost."""
    passed_over: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Nodes that were to lead regions next, lived, and answered no orders: each is left once."""
    to_move: tuple[str, ...] = ()
    """Regions whose borrowed input Spark has not brought over yet."""
    adoption: Adoption | None = None
    moves: int = 0
    """Jobs that ended: part of an attempt's name, for people."""
    rows_in: int = 0
    rows_out: int = 0
    bytes_moved: int = 0

    def without(self, regions: Collection[str]) -> "FailoverTable":
        left = tuple(region for region in self.region_ids if region not in regions)
        return self.model_copy(update={"region_ids": left})


async def reroute(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Reroutes the regions; does nothing if the route has changed since the submission.

    If it runs again because a new leader is gone, has started again or has lost its disk, nodes
    that are back keep their regions, and the procedure also opens the regions that it has rerouted
    before.
    """
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    route = snapshot.get(key)
    if state.expected_epoch is not None and not state.moving and route is not None:
        epochs = [r.epoch for r in route.region_routes if r.region_id in state.region_ids]
        if any(epoch != state.expected_epoch for epoch in epochs):
            raise Conflict("epoch-mismatch", expected=state.expected_epoch, found=epochs)
    plan = _plan(state, context, snapshot)
    if route is None or not (plan or state.moving):
        return Done(state, {"table_id": state.table_id, "regions": []})
    changed = tuple(rerouted.region for rerouted in plan)
    txn = change(snapshot.only(key), route_changed(route, changed)) if changed else Txn()
    moving = sorted({*state.moving, *(rerouted.region.region_id for rerouted in plan)})
    promoted = {*state.promoted} - {rerouted.region.region_id for rerouted in plan}
    promoted |= {rerouted.region.region_id for rerouted in plan if rerouted.is_promoted}
    leased = {*state.leased} - {rerouted.region.region_id for rerouted in plan}
    leased |= {rerouted.region.region_id for rerouted in plan if rerouted.is_leased}
    leavings = [leaving(rerouted.region, root) for rerouted in plan for root in rerouted.leaves]
    left = {
        rerouted.led_by
        for rerouted in plan
        if (rerouted.is_leased or not rerouted.is_promoted)
        and rerouted.led_by != rerouted.region.leader
    }
    new = state.model_copy(
        update={
            "moving": tuple(moving),
            "led_by": tuple(sorted({*state.led_by, *left})),
            "leavings": (*state.leavings, *leavings),
            "promoted": tuple(sorted(promoted)),
            "leased": tuple(sorted(leased)),
            "former": _former(state, snapshot, plan),
            "passed_over": (*state.passed_over, *sorted({r.led_by for r in plan if r.was_hung})),
            "to_move": tuple(region_id for region_id in moving if region_id not in promoted),
            "adoption": None,
        }
    )
    return Goto("await_lease" if _leased(new) else "open", new, txn)


def _plan(state: FailoverTable, context: Context, snapshot: Snapshot) -> tuple[Rerouted, ...]:
    """The regions to reroute now. *snapshot*: of TableInfo and route. Raises as `reroute_plan`."""
    info = snapshot.get(TableInfoKey(state.table_id))
    engine = LSM if info is None else info.engine
    target = DrainTarget(
        *(state.source, state.region_ids, state.targets, state.moving, engine),
        former=state.former,
        is_forced=state.force,
        passed_over=state.passed_over,
        is_patient=context.step == "open" and context.live.attempt == 1,
    )
    if info is not None:
        catalog = context.ports.applied()
        placement = catalog.placing.placement_of(info)
        target = replace(
            target,
            node_filter=placement.node_filter,
            preferred_zones=placement.preferred_zones,
            groups=catalog.partition_groups(info),
        )
    nodes = context.ports.placement.nodes()
    return reroute_plan(snapshot.get(TableRouteKey(state.table_id)), nodes, target)


def _former(
    state: FailoverTable, snapshot: Snapshot, plan: Collection[Rerouted]
) -> tuple[FormerLeader, ...]:
    """The former leaders once the regions of *plan* are rerouted."""
    route = snapshot.must(TableRouteKey(state.table_id))
    before = {region.region_id: region for region in route.region_routes}
    after = {rerouted.region.region_id: rerouted.region for rerouted in plan}
    stay = [each for each in state.former if each.region_id not in after]
    new = [noted(before[region_id], region, state.former) for region_id, region in after.items()]
    return (*stay, *(each for each in new if each is not None))


def _leased(state: FailoverTable) -> tuple[str, ...]:
    """Regions whose old leaders may serve by leases: those without another copy in their sets."""
    promised = {*state.promoted} - {*state.leased}
    return tuple(region for region in state.moving if region not in promised)


async def await_lease(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Waits until leases of the old leaders on regions that are to open have ended. An old leader
    that is back may lead another region, whose lease is renewed."""
    key = TableRouteKey(state.table_id)
    route = (await context.snapshot(key)).must(key)
    opened = {r.region_id for r in route.region_routes if r.state is RegionState.OPEN}
    waited = [region for region in _leased(state) if region not in opened]
    await outwait_leases(context, () if state.force else state.led_by, waited)
    return Goto("open", state)


async def open_regions(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Orders the new leaders to open, and writes each result into the route, until all are open."""
    if await _can_reroute(state, context):
        return Goto("reroute", state)
    announcement = await open_and_announce(context, state.table_id, state.moving)
    if announcement.lost and not announcement.closed:
        result = {"table_id": state.table_id, "regions": [], "lost": list(announcement.lost)}
        return Done(state, result, announcement.txn)
    return Goto("open" if announcement.closed else "serve", state, announcement.txn)


async def serve(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Grants their leases at once, rather than with the next heartbeat."""
    if await _can_reroute(state, context):
        return Goto("reroute", state)
    return Goto("move", state, await grant(context, state.table_id, state.moving))


async def move(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Copies the borrowed input of one region by Spark. Each attempt writes to a folder of its
    own, also the first one after a pause. A job that lasts ends once a region of the table needs
    another leader, since no other procedure may give it one meanwhile."""
    if await _can_reroute(state, context):
        return Goto("reroute", state)
    if not state.to_move:
        return Goto("release", state)
    region_id, *rest = state.to_move
    region = await _region(state, context, region_id)
    borrowed = await context.ports.nodes.borrowed(region.leader, region_id)
    number = f"{state.moves}-{context.ports.ids.procedure_id()}"
    attempt = f"attempts/{context.procedure}-{number}"
    adoption = Adoption(region_id=region_id, attempt=attempt, files=())
    new = state.model_copy(
        update={"to_move": tuple(rest), "adoption": adoption, "moves": state.moves + 1}
    )
    if borrowed.files or borrowed.segments:
        job = MoveJob(
            job_id=f"{context.procedure}-{region_id}-{number}",
            procedure=context.procedure,
            attempt=attempt,
            borrowed=borrowed,
        )
        with context.waiting_for("spark", job.job_id):
            moved = await _moved_by(job, state, context)
        files = tuple(file.model_dump(mode="json") for file in moved.files)
        new = new.model_copy(
            update={
                "adoption": adoption.model_copy(update={"files": files}),
                "rows_in": state.rows_in + moved.rows_in,
                "rows_out": state.rows_out + moved.rows_out,
                "bytes_moved": state.bytes_moved + moved.bytes_out,
            }
        )
    return Goto("adopt", new)


async def _moved_by(job: MoveJob, state: FailoverTable, context: Context) -> MoveResult:
    """Raises Unavailable, with the job ended, once regions can be rerouted."""

    async def moved() -> MoveResult | MetaError:
        try:
            return await context.ports.jobs.move(job, progress=context.progress)
        except MetaError as error:
            return error

    going = asyncio.gather(moved())
    try:
        while not going.done():
            await asyncio.wait([going], timeout=LOOK_MS / 1000)
            if not going.done() and _seems_led_amiss(state, context):
                await _must_not_reroute(state, context)
    finally:
        if not going.done():
            going.cancel()
            await asyncio.wait([going])
            going.exception()  # that it was ended: looked at
    (result,) = going.result()
    if isinstance(result, MetaError):
        raise result
    return result


def _seems_led_amiss(state: FailoverTable, context: Context) -> bool:
    """Whether the applied route of a region names a node that is dead, or serves something not as
    its routes say. A look at the nodes, which reads nothing from the store."""
    table = context.ports.applied().tables.get(state.table_id)
    if table is None:
        return False
    nodes = context.ports.placement.nodes()
    sound = {view.node_id for view in nodes if view.alive and not (view.restarted or view.lost)}
    moving = [r for r in table.route.region_routes if r.region_id in state.region_ids]
    return any(region.leader not in sound for region in moving)


async def _must_not_reroute(state: FailoverTable, context: Context) -> None:
    if await _can_reroute(state, context):
        raise Unavailable("not-ready", what=f"the leader of a region of {state.name}")


async def adopt(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Orders the leader to exchange the borrowed inputs for those files, in one manifest."""
    assert state.adoption is not None
    if await _can_reroute(state, context):
        return Goto("reroute", state)
    region = await _region(state, context, state.adoption.region_id)
    order = AdoptFiles(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        procedure=context.procedure,
        attempt=state.adoption.attempt,
        files=[DataFile.model_validate(file) for file in state.adoption.files],
    )
    try:
        await order_one(context, region.leader, order)
    except (Refused, Conflict):  # not those files: bring them over again
        again = (region.region_id, *state.to_move)
        return Goto("move", state.model_copy(update={"adoption": None, "to_move": again}))
    new = state.model_copy(update={"adoption": None})
    return Goto("move" if state.to_move else "release", new)


async def release(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Records that the regions borrow nothing any more; the old folders are then unused."""
    if await _can_reroute(state, context):
        return Goto("reroute", state)
    key = TableRouteKey(state.table_id)
    snapshot = await context.snapshot(key)
    route = snapshot.must(key)
    changed = tuple(
        region.model_copy(update={"borrows": (), "unannounced": ()})
        for region in route.region_routes
        if region.region_id in state.moving and region.borrows
    )
    txn = change(snapshot, route_changed(route, changed)) if changed else Txn()
    return Goto("discard", state, txn)


async def discard(state: FailoverTable, context: Context) -> Outcome[FailoverTable]:
    """Has the borrowed folders deleted. A folder whose leader is gone, or does not serve the region
    and can have no successor, stays and is reported."""
    if await _can_reroute(state, context):
        return Goto("reroute", state)
    left = await discard_roots(context, state.table_id, state.leavings)
    key = TableRouteKey(state.table_id)
    route = (await context.snapshot(key)).must(key)
    by_id = {region.region_id: region for region in route.region_routes}
    result = {
        "table_id": state.table_id,
        "regions": [_moved(by_id[region_id]) for region_id in state.moving],
        "rows_in": state.rows_in,
        "rows_out": state.rows_out,
        "bytes": state.bytes_moved,
        "left_behind": left,
    }
    return Done(state, result)


def _moved(region: RegionRoute) -> dict[str, object]:
    return {"region_id": region.region_id, "leader": region.leader, "epoch": region.epoch}


async def _region(state: FailoverTable, context: Context, region_id: str) -> RegionRoute:
    key = TableRouteKey(state.table_id)
    route = (await context.snapshot(key)).must(key)
    return next(region for region in route.region_routes if region.region_id == region_id)


async def _can_reroute(state: FailoverTable, context: Context) -> bool:
    """Whether a region needs another leader and can have one: a new leader has died too, has
    started again and opens nothing at the epoch of the route, or has lost what another copy has.
    One that nobody can lead now holds up no other region: it is looked for at the next attempt."""
    keys = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(*keys)
    try:
        return bool(_plan(state, context, snapshot))
    except Unavailable:
        return False


def locks(state: FailoverTable) -> tuple[Lock, ...]:
    regions = (exclusive(region_key(region_id)) for region_id in state.region_ids)
    return (shared(route_key(state.table_id)), *regions)


def resource(state: FailoverTable) -> Resource:
    return Resource.table(state.table_id, state.name)


FAILOVER_TABLE = Kind(
    name="failover_table",
    state=FailoverTable,
    steps={
        "reroute": Step(reroute, to=frozenset({"await_lease", "open"}), ends=True),
        "await_lease": Step(await_lease, to=frozenset({"open"}), waits=True),
        "open": Step(
            open_regions, to=frozenset({"open", "serve", "reroute"}), ends=True, waits=True
        ),
        "serve": Step(serve, to=frozenset({"move", "reroute"})),
        "move": Step(move, to=frozenset({"adopt", "release", "reroute"}), waits=True, paced=True),
        "adopt": Step(adopt, to=frozenset({"move", "release", "reroute"})),
        "release": Step(release, to=frozenset({"discard", "reroute"})),
        "discard": Step(discard, to=frozenset({"reroute"}), ends=True),
    },
    no_return="reroute",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=3_600_000,
    lane=AdmissionLane.REPAIR,
)
