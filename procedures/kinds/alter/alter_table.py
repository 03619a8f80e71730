"""alter_table: applies operations to one table, all of them or none, while statements run.

All elements that are added or dropped first reach their last undoable state. One transaction, the
point of no return, takes them over it: added elements become public, dropped ones can no longer
come back, and names, defaults and options are edited. Dropped elements are removed after it. Each
transition waits as described in procedures/steps/transitions.py. If the alter is cancelled before
the point of no return, the elements go back through the states of their graphs.
"""

from collections.abc import Mapping
from typing import Any

from keys.commit.change import change, route_changed
from keys.commit.txn import Snapshot, Txn
from keys.model.elements import STORED_GRAPHS
from keys.model.log import TableAltered
from keys.model.records import ClientRequirements, Lock, Resource
from keys.model.tables import TableInfo, TableRoute
from metasrv_base.elements.states import ElementState
from procedures.context import Context
from procedures.elements.element_targets import (
    ElementTarget,
    What,
    back,
    moved,
    past_no_return,
    to_end,
    to_last_undoable,
)
from procedures.elements.reorg import IndexReorg, Runs, has, joined, summary
from procedures.engine.sizes import altered_must_fit
from procedures.kinds.alter.alter_operations import (
    AddIndex,
    NextIds,
    Operation,
    SetOptionsOperation,
    drafted,
    edited,
    is_of_copies,
)
from procedures.kinds.alter.copies_operations import SetCopiesOperation
from procedures.kinds.alter.draft import AlterDraft
from procedures.locking.locks import exclusive, in_schema, route_key, shared, table_key
from procedures.machine import Back, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.quorum import changed_regions
from procedures.steps.copies.copy_orders import tell_leaders
from procedures.steps.marks import close_marks, open_marks
from procedures.steps.region_orders import not_gone
from procedures.steps.requirements import ends_if_missing, required_table
from procedures.steps.transitions import is_settled, publish, read_table, settle, tell
from procedures.steps.validation import REGIONS_AT_ONCE, look_at

OPERATIONS_SHOWN = 3
"""Operations of an alter that a list of procedures names."""
WAIT_MS = 3_600_000
"""Limit of waits for holders of schema leases and for regions in failover; then it is undone."""


class AlterTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    operations: tuple[Operation, ...]
    moves: tuple[ElementTarget, ...] = ()
    """Targets of the elements that are added or dropped, once they have ids."""
    first: NextIds | None = None
    """The first ids of those; None: it has not begun."""
    has_entered: bool = False
    """Whether the elements that come are in the table."""
    grace_ms: int = 0
    """Time for which dropped elements are kept and maintained, so that a cancel restores them at
    once."""
    grace_until_ms: int | None = None
    """Wall clock; None: it has not begun."""
    valid: Runs | None = None
    """Numbers of the regions whose rows satisfy the constraints and types that come; None: not
    looked yet."""
    reorg: IndexReorg | None = None
    """Progress of filling a new index; None: it has not begun."""

    @property
    def sets_copies(self) -> bool:
        return any(map(is_of_copies, self.operations))

    @property
    def is_of_statements(self) -> bool:
        """Whether statements depend on an operation."""
        return any(
            not isinstance(operation, SetOptionsOperation | SetCopiesOperation)
            for operation in self.operations
        )

    @property
    def drops(self) -> bool:
        return any(not move.adds for move in self.moves)

    @property
    def adds_index(self) -> bool:
        return any(move.adds and move.what is What.INDEX for move in self.moves)

    @property
    def coming_constraints(self) -> frozenset[int]:
        """Ids of those that every row must satisfy before they are public."""
        return frozenset(
            move.id
            for move in self.moves
            if move.what is What.CONSTRAINT and move.to is ElementState.PUBLIC
        )

    @property
    def lossy_columns(self) -> frozenset[int]:
        """Ids of those that come in the place of others of which not every value fits them."""
        return frozenset(move.id for move in self.moves if move.lossy)

    @property
    def after_last_undoable(self) -> str:
        """The step that follows once no element can go further and be undone."""
        if self.adds_index:
            return "mark"
        looks = self.coming_constraints or self.lossy_columns
        return "validate" if looks else self.last_wait

    @property
    def last_wait(self) -> str:
        return "grace" if self.drops and self.grace_ms else "commit"

    @property
    def index_id(self) -> int:
        """Id of the index that is added."""
        return next(move.id for move in self.moves if move.adds and move.what is What.INDEX)

    @property
    def is_lenient(self) -> bool:
        """Whether an index stays write-only for which rows have values twice."""
        return any(
            isinstance(operation, AddIndex) and operation.not_valid for operation in self.operations
        )


async def read_draft(state: AlterTable, context: Context) -> tuple[Snapshot, TableInfo, AlterDraft]:
    """Reads the table under the lock, and drafts the operations on it. Raises Refused."""
    snapshot, info = await required_table(context, state)
    draft = drafted(info, state.operations)
    _, _, route = await read_table(context, state.table_id)
    must_fit(draft, state, route, context.client)
    return snapshot, info, draft


def must_fit(
    draft: AlterDraft, state: AlterTable, route: TableRoute, client: ClientRequirements
) -> None:
    """Raises Refused("ddl-too-large") where a later transition would not fit a transaction."""
    last = edited(draft.entered, state.operations)
    record_bytes = len(client.model_dump_json()) + len(state.model_dump_json())
    altered_must_fit(last, route, record_bytes)


async def begin(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Drafts the operations, and reserves the ids of new elements. An alter on which no statement
    depends ends here."""
    snapshot, info, draft = await read_draft(state, context)
    if draft.moves:
        return entering(state, snapshot, info, draft)
    if any(not isinstance(operation, SetOptionsOperation) for operation in state.operations):
        return Goto("commit", state)
    new = edited(info, state.operations).model_copy(update={"version": info.version + 1})
    txn = change(snapshot, TableAltered(info=new))
    return Done(state, result_of(state, new), txn)


def entering(
    state: AlterTable, snapshot: Snapshot, info: TableInfo, draft: AlterDraft
) -> Goto[AlterTable]:
    first = NextIds.of(info)
    state = state.model_copy(update={"moves": draft.moves, "first": first})
    return Goto("advance", state, _reserved(snapshot, info, NextIds.of(draft.entered)))


def _reserved(snapshot: Snapshot, info: TableInfo, following: NextIds) -> Txn:
    """Regions are told of new elements before they are published. An id that any region has heard
    of is never given to another element, whatever becomes of this one."""
    if following == NextIds.of(info):
        return Txn.on(snapshot)
    new = following.on(info).model_copy(update={"version": info.version + 1})
    return change(snapshot, TableAltered(info=new))


async def advance(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Publishes the next states of all elements, or waits until it may; up to the last
    undoable one."""
    snapshot, info, route = await read_table(context, state.table_id)
    if not is_settled(info):
        floor = await settle(context, snapshot, info)
        is_last_undoable = state.has_entered and moved(info, state.moves, to_last_undoable) == info
        return Goto(state.after_last_undoable if is_last_undoable else "advance", state, floor)
    base = info
    if not state.has_entered:
        assert state.first is not None, "reserved when it began"
        entered_info = drafted(state.first.on(info), state.operations).entered
        base = NextIds.of(entered_info).or_later(info).on(entered_info)
    new = moved(base, state.moves, to_last_undoable)
    entered = state.model_copy(update={"has_entered": True})
    if new == info:  # another alter has left all in its last undoable state
        return Goto(state.after_last_undoable, entered)
    return Goto("advance", entered, await publish(context, snapshot, info, route, new))


async def validate(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Has jobs check the rows of some more regions against the new constraints and types."""
    _, info, route = await read_table(context, state.table_id)
    valid = state.valid
    if valid is None:
        with_rows = {region.number for region in await open_marks(context, info, route)}
        valid = ()
        looked = [region for region in route.region_routes if region.number not in with_rows]
    else:
        left = [region for region in not_gone(info, route) if not has(valid, region.number)]
        if not left:
            await close_marks(context, state.table_id)
            return Goto(state.last_wait, state)
        looked = left[:REGIONS_AT_ONCE]
        coming = [
            constraint
            for constraint in info.constraints
            if constraint.id in state.coming_constraints
        ]
        changed = [column for column in info.columns if column.id in state.lossy_columns]
        await look_at(context, info, looked, coming, changed)
    for region in looked:
        valid = joined(valid, region.number)
    return Goto("validate", state.model_copy(update={"valid": valid}))


async def stop_looking(state: AlterTable, context: Context) -> None:
    await close_marks(context, state.table_id)


async def grace(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Waits before the point of no return: reads ignore the dropped elements, and writes still
    maintain them."""
    now_ms = context.ports.clock.wall_ms()
    if state.grace_until_ms is None:
        until_ms = now_ms + state.grace_ms
        return Goto("grace", state.model_copy(update={"grace_until_ms": until_ms}))
    left_ms = state.grace_until_ms - now_ms
    if left_ms > 0:
        with context.waiting_for("grace", "undrop", left_ms):
            await context.live.rest(left_ms)
        return Goto("grace", state)
    return Goto("commit", state)


async def commit(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Applies the whole alter in one transaction."""
    snapshot, info, route = await read_table(context, state.table_id)
    crossed = moved(info, state.moves, past_no_return)
    new = edited(crossed, state.operations)
    if crossed != info:
        return Goto("finish", state, await publish(context, snapshot, info, route, new))
    regions = changed_regions(info, new, route.region_routes) if state.sets_copies else ()
    new = new.model_copy(update={"version": info.version + 1})
    routes = [route_changed(route, regions)] if regions else []
    return Goto("finish", state, change(snapshot, TableAltered(info=new), *routes))


async def finish(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Ends the change. New statements find the table as it is now. Dropped elements move on
    until they are absent, and the regions forget them once no holder writes them."""
    snapshot, info, route = await read_table(context, state.table_id)
    if state.sets_copies:
        await tell_leaders(context, info, route.region_routes)
    if not state.drops:
        if state.is_of_statements:
            await context.drained(info.table_id, info.schema_version if state.moves else None)
        return Done(state, result_of(state, info))
    if not is_settled(info):
        return Goto("finish", state, await settle(context, snapshot, info))
    new = moved(info, state.moves, to_end)
    if new != info:
        return Goto("finish", state, await publish(context, snapshot, info, route, new))
    await tell(context, info, route)
    return Done(state, result_of(state, info))


async def go_back(state: AlterTable, context: Context) -> Back | None:
    """Publishes one transition back, or waits for the last one; the elements' states say which.

    In the end regions forget what came: of an index they may have heard before it was published.
    """
    if not state.has_entered and not state.adds_index:
        return None
    snapshot, info, route = await read_table(context, state.table_id)
    if not is_settled(info):
        return Back(await settle(context, snapshot, info))
    new = moved(info, state.moves, back)
    if new != info:
        return Back(await publish(context, snapshot, info, route, new))
    await tell(context, info, route)
    return None


def result_of(state: AlterTable, info: TableInfo) -> dict[str, object]:
    result: dict[str, object] = {"table_id": info.table_id, "name": info.full_name}
    return result if state.reorg is None else result | summary(state.reorg)


def locks(state: AlterTable) -> tuple[Lock, ...]:
    own = [exclusive(table_key(state.table_id))]
    own += [shared(route_key(state.table_id))] if state.sets_copies else []
    return in_schema(state.catalog, state.schema_name, *own)


def resource(state: AlterTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


def operation_words(stored: Mapping[str, Any]) -> str:
    """`add column country, drop column old`; of many operations the first."""
    operations = stored["operations"]
    words = [
        f"{operation['op'].replace('_', ' ')} {operation.get('name', '')}".rstrip()
        for operation in operations[:OPERATIONS_SHOWN]
    ]
    more = len(operations) - len(words)
    return ", ".join([*words, *([f"{more} more"] if more else [])])


ALTER_TABLE = Kind(
    name="alter_table",
    state=AlterTable,
    steps={
        "begin": Step(
            ends_if_missing(begin, resource), to=frozenset({"advance", "commit"}), ends=True
        ),
        "advance": Step(
            advance,
            to=frozenset({"advance", "validate", "grace", "commit"}),
            undo=go_back,
            waits=True,
        ),
        "validate": Step(
            validate,
            to=frozenset({"validate", "grace", "commit"}),
            undo=stop_looking,
            waits=True,
            paced=True,
        ),
        "grace": Step(grace, to=frozenset({"grace", "commit"}), waits=True),
        "commit": Step(commit, to=frozenset({"finish"})),
        "finish": Step(finish, to=frozenset({"finish"}), ends=True, waits=True),
    },
    no_return="commit",
    locks=locks,
    resource=resource,
    change=operation_words,
    success=200,
    deadline_ms=WAIT_MS,
    graphs=STORED_GRAPHS,
)
