"""alter_table: operations on one table, all of them or none, while statements go on.

What elements come or go moves to the brink first: the last state from which all can be undone.
Then one transaction makes what comes public, takes back what goes, and edits names, defaults and
options. What goes is cleared away behind it. Each transition waits as procedures/transitions.py
says; cancelled before the brink is crossed, the elements go back the way that their graphs give.
"""

from base.errors import Refused
from keys.elements import STORED_GRAPHS
from keys.log import TableAltered
from keys.records import Lock, Resource
from keys.tables import TableInfo, TableInfoKey, TableNameKey
from keys.txn import Snapshot, Txn
from procedures.context import Context
from procedures.kinds.alter_operations import NextIds, Operation, drafted, edited
from procedures.locks import exclusive, in_schema, table_key
from procedures.machine import Back, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.moves import Move, What, back, moved, over_brink, to_brink, to_end
from procedures.requirements import require_same_table, require_version
from procedures.transitions import is_settled, publish, read_table, settle, tell

WAIT_MS = 3_600_000
"""For holders of schema leases and for regions in failover; then it is undone."""


class AlterTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    operations: tuple[Operation, ...]
    moves: tuple[Move, ...] = ()
    """Of the elements that come or go, once they have ids."""
    first: NextIds | None = None
    """The first ids of those; None: it has not begun."""
    has_entered: bool = False
    """Whether the elements that come are in the table."""

    @property
    def drops(self) -> bool:
        return any(not move.adds for move in self.moves)

    @property
    def adds_index(self) -> bool:
        return any(move.adds and move.what is What.INDEX for move in self.moves)


async def begin(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    """Judges the operations under the lock, and reserves the ids of new elements. An alter that
    only edits is over with it."""
    key = TableInfoKey(state.table_id)
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    seen = await at.snapshot(key, name)
    require_same_table(at.client, name, seen.get(name))
    info = seen.must(key)
    require_version(at.client, info)
    draft = drafted(info, state.operations)
    if draft.moves:
        first = NextIds.of(info)
        state = state.model_copy(update={"moves": draft.moves, "first": first})
        return Goto("advance", state, _reserved(seen, info, NextIds.of(draft.entered)))
    new = edited(info, state.operations).model_copy(update={"version": info.version + 1})
    return Done(state, _result(new), Txn.on(seen).put(key, new).log(TableAltered(info=new)))


def _reserved(seen: Snapshot, info: TableInfo, following: NextIds) -> Txn:
    """Regions are told of new elements before they are published. An id that any region has heard
    of is never given to another element, whatever becomes of this one."""
    txn = Txn.on(seen)
    if following == NextIds.of(info):
        return txn
    new = following.on(info).model_copy(update={"version": info.version + 1})
    return txn.put(TableInfoKey(info.table_id), new).log(TableAltered(info=new))


async def advance(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    """Publishes the next states of all elements, or waits until it may; up to the brink."""
    seen, info, route = await read_table(at, state.table_id)
    if not is_settled(info):
        floor = await settle(at, seen, info)
        on_brink = state.has_entered and moved(info, state.moves, to_brink) == info
        brink = "fill" if state.adds_index else "commit"
        return Goto(brink if on_brink else "advance", state, floor)
    base = info
    if not state.has_entered:
        assert state.first is not None, "reserved when it began"
        base = drafted(state.first.on(info), state.operations).entered
    txn = await publish(at, seen, info, route, moved(base, state.moves, to_brink))
    return Goto("advance", state.model_copy(update={"has_entered": True}), txn)


async def fill(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    """A new index has an entry for every row. Rows that were written since it is write-only have
    theirs; of rows from before none are taken yet, so no region may ever have had one."""
    _, info, route = await read_table(at, state.table_id)
    answers = await tell(at, info, route)
    had_rows = sorted(name for name, one in answers.results.items() if one.floor_version)
    if had_rows:
        reason = "an index over rows that are there already is not built yet"
        raise Refused("unsupported", pointer="/columns", reason=reason, regions=had_rows)
    return Goto("commit", state)


async def commit(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    """Makes all of it true in one transaction."""
    seen, info, route = await read_table(at, state.table_id)
    new = edited(moved(info, state.moves, over_brink), state.operations)
    return Goto("finish", state, await publish(at, seen, info, route, new))


async def finish(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    """Whoever asks next, anywhere, finds the table as it is now. What is dropped goes on, and the
    regions forget it once nobody writes it any more."""
    seen, info, route = await read_table(at, state.table_id)
    if not state.drops:
        await at.drained(info.table_id, info.schema_version)
        return Done(state, _result(info))
    if not is_settled(info):
        return Goto("finish", state, await settle(at, seen, info))
    new = moved(info, state.moves, to_end)
    if new != info:
        return Goto("finish", state, await publish(at, seen, info, route, new))
    await tell(at, info, route)
    return Done(state, _result(info))


async def go_back(state: AlterTable, at: Context) -> Back | None:
    """One transition back, or the wait before it; the elements say how far it had come.

    In the end regions forget what came: of an index they may have heard before it was published.
    """
    if not state.has_entered and not state.adds_index:
        return None
    seen, info, route = await read_table(at, state.table_id)
    if not is_settled(info):
        return Back(await settle(at, seen, info))
    new = moved(info, state.moves, back)
    if new != info:
        return Back(await publish(at, seen, info, route, new))
    await tell(at, info, route)
    return None


def _result(info: TableInfo) -> dict[str, object]:
    return {"table_id": info.table_id, "name": info.full_name}


def locks(state: AlterTable) -> tuple[Lock, ...]:
    return in_schema(state.catalog, state.schema_name, exclusive(table_key(state.table_id)))


def resource(state: AlterTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


ALTER_TABLE = Kind(
    name="alter_table",
    state=AlterTable,
    steps={
        "begin": Step(begin, to=frozenset({"advance"}), ends=True),
        "advance": Step(advance, to=frozenset({"advance", "commit"}), undo=go_back, waits=True),
        "commit": Step(commit, to=frozenset({"finish"})),
        "finish": Step(finish, to=frozenset({"finish"}), ends=True, waits=True),
    },
    no_return="commit",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=WAIT_MS,
    graphs=STORED_GRAPHS,
)
