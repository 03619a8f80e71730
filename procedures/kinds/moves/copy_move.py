"""The state of a move of a copy, its destination, and the children that do its work."""

from enum import IntEnum, StrEnum
from functools import partial
from operator import is_

from pydantic import Field

from keys.model.records import ProcedureOutcome
from keys.model.tables import CopyRole, RegionRoute, TableInfo
from metasrv_base.errors import Conflict, NotFound
from metasrv_base.wire.problem.problems import node_error
from procedures.context import Context
from procedures.engine.retry import is_definite, is_passing
from procedures.kinds.copies.add_copy import AddCopy, must_take_one_more
from procedures.kinds.copies.remove_copy import RemoveCopy
from procedures.kinds.failover.switch_leader import SwitchLeader
from procedures.machine import ProcedureState
from procedures.ports import ChildEnd
from procedures.steps.copies.copy_routes import must_have_region, must_not_be_eligible
from procedures.steps.paged_children import child_id


class Destination(StrEnum):
    """The copy that the destination has when a move begins."""

    ABSENT = "absent"
    """There is none: one is added."""
    LEARNER = "learner"
    """One that is no member of the set: it is made anew, in another root."""
    MEMBER = "member"
    """One in sync: nothing is added."""


class ChildNumber(IntEnum):
    """The part of a child's id that says what it is for."""

    ADD = 1
    SWITCH = 2
    REMOVE = 3
    REMOVE_ADDED = 4
    LEAD_BACK = 5


class MoveCopy(ProcedureState):
    table_id: int
    name: str
    region_id: str
    from_node: str
    root: str
    """The root of the copy that is to go. A truncate gives it another (`with_source`)."""
    to_node: str
    reason: str
    destination: Destination | None = Field(default=None, exclude_if=partial(is_, None))
    """The copy of the destination when the move began; None: not looked at yet."""
    replaces: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The root of a learner of the destination, in whose place the copy comes."""
    to_root: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The root of the copy at the destination; None: not made yet."""
    in_sync: int | None = Field(default=None, exclude_if=partial(is_, None))
    """Copies in sync when the move began, at most as many as the table is to have. None: nothing is
    added."""
    least: int | None = Field(default=None, exclude_if=partial(is_, None))
    """Copies that must be in sync without the source: the minimum of the region, or `in_sync` if
    they were fewer. None: as many as the table is to have."""
    rounds: int = 0
    """Children that have ended: the ids of the next ones follow from it."""
    failed: int = 0
    """Children of the step in flight that have failed, in a row."""

    def after_child(self, *, has_failed: bool) -> "MoveCopy":
        failed = self.failed + 1 if has_failed else 0
        return self.model_copy(update={"rounds": self.rounds + 1, "failed": failed})


def destination_of(
    info: TableInfo, region: RegionRoute, from_root: str, to_node: str
) -> Destination:
    """Judges the node that is to get the copy of *from_root*.

    Raises NotFound where no copy has that root; Conflict: `replica-limit` for a region that has one
    copy too many already, `node-not-eligible` for the node of the source, `action-not-allowed`
    where too few copies would be left, since the destination has one already, or where that one may
    lead if the leader is lost; Unavailable while the region is not open.
    """
    if from_root not in region.roots:
        raise NotFound(what=f"copy of region {region.region_id}", name=from_root)
    root = root_on(region, to_node)
    if root == from_root:
        reasons = {to_node: "the node that the copy is to leave"}
        raise Conflict("node-not-eligible", region_id=region.region_id, reasons=reasons)
    if root is None:
        must_take_one_more(info, region, region.copies)
        return Destination.ABSENT
    if to_node not in region.in_sync:
        _must_be_left(info, region, len(region.nodes) - 1, f"{to_node} has a copy that is to join")
        must_not_be_eligible(region, root, "move_copy")
        kept = tuple(copy for copy in region.copies if copy.root != root)
        must_take_one_more(info, region, kept)
        return Destination.LEARNER
    in_set = {copy.root for copy in region.copies if copy.role is CopyRole.IN_SYNC}
    left = len(region.in_sync) - (from_root in {region.root, *in_set})
    _must_be_left(info, region, left, f"{to_node} has a copy in sync")
    return Destination.MEMBER


def _must_be_left(info: TableInfo, region: RegionRoute, left: int, why: str) -> None:
    """Raises Conflict("action-not-allowed") for fewer copies than the table is to have."""
    if left < info.replicas:
        state = f"{why}: {left} of {info.replicas} copies would be left"
        facts = {"action": "move_copy", "state": state}
        raise Conflict("action-not-allowed", region_id=region.region_id, **facts)


def root_on(region: RegionRoute, node: str) -> str | None:
    """The root of the copy of *node*; None: it has none."""
    roots = dict(zip(region.nodes, region.roots, strict=True))
    return roots.get(node)


def with_source(state: MoveCopy, region: RegionRoute) -> MoveCopy:
    """The move of the copy that the node of the source has by now: a truncate begins every copy
    anew, in another root."""
    root = root_on(region, state.from_node)
    return state if root in (None, state.root) else state.model_copy(update={"root": root})


def applied_region(state: MoveCopy, context: Context) -> tuple[TableInfo, RegionRoute]:
    """The table and the region as this leader has applied them, which is no older than what
    children have committed. Raises NotFound, also for a dropped table: its regions move by
    move_dropped."""
    table = context.ports.applied().tables.get(state.table_id)
    if table is None or table.dropped_at_ms is not None:
        raise NotFound("table-not-found", table_id=state.table_id)
    return table.info, must_have_region(table.route, state.region_id)


def addition(state: MoveCopy) -> AddCopy:
    return AddCopy(
        table_id=state.table_id,
        name=state.name,
        region_id=state.region_id,
        node=state.to_node,
        reason=state.reason,
        replaces=state.replaces,
    )


def removal(state: MoveCopy) -> RemoveCopy:
    """The removal of the source. It requires the copy that was added to be in the set."""
    return RemoveCopy(
        table_id=state.table_id,
        name=state.name,
        region_id=state.region_id,
        node=state.from_node,
        root=state.root,
        reason=state.reason,
        replaced_by=None if state.destination is Destination.MEMBER else state.to_root,
        least=state.least,
    )


def is_needed_for_good(state: MoveCopy, info: TableInfo, region: RegionRoute) -> bool:
    """Whether too few copies would be left without the source, and none will be added: the region
    has as many as its table is to have. So it is if another copy was removed since the move found
    the destination to have one."""
    needed = info.replicas if state.least is None else state.least
    return info.replicas <= len(region.roots) <= needed


def switch_from(
    state: MoveCopy, region: RegionRoute, spared: str, to_node: str | None
) -> SwitchLeader:
    """The switch by which *spared* leads no more. *to_node* None: the copy that suits best."""
    return SwitchLeader(
        table_id=state.table_id,
        name=state.name,
        region_id=state.region_id,
        reason=state.reason,
        epoch=region.epoch,
        to_node=to_node,
        spared=spared,
    )


async def run_child(
    context: Context, child: tuple[int, ChildNumber], kind: str, change: ProcedureState
) -> ChildEnd:
    """Submits the child of that round and number, unless it exists, and waits for its end."""
    number = child_id(context.procedure, *child)
    await context.children.submit(number, kind, change.model_dump(mode="json"))
    with context.waiting_for("child", number):
        (end,) = await context.children.wait((number,))
    return end


def has_succeeded(end: ChildEnd | None) -> bool:
    return end is not None and end.outcome is ProcedureOutcome.SUCCEEDED


def must_be_passing(end: ChildEnd, kind: str) -> None:
    """Raises the error of a child that failed, unless the same child, begun anew, may succeed."""
    if end.error_code is None:
        facts = {"action": "move_copy", "state": f"{kind} was cancelled"}
        raise Conflict("action-not-allowed", **facts)
    error = node_error(end.error_code, {"child": end.procedure})
    if is_definite(error) or not is_passing(error):
        raise error
