"""Kinds that add, drop and validate indexes: entries are made before the point of no return.

The steps are those of an alter (procedures/kinds/alter/alter_table.py), and two more: `mark` opens
a mark in every region, `fill` runs the reorg round by round. An index is done when it is public:
whoever is answered may read by it (G28). One that may not be public yet, for rows have its values
twice, can be left write-only; `validate_index` makes it public when they are mended.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from procedures.context import Context
from procedures.elements.reorg import IndexReorg
from procedures.kinds.alter.alter_operations import DropIndex
from procedures.kinds.alter.alter_table import (
    ALTER_TABLE,
    AlterTable,
    advance,
    begin,
    commit,
    entering,
    finish,
    go_back,
    grace,
    read_draft,
    resource,
    result_of,
)
from procedures.machine import Done, Goto, IndexOf, Outcome, Step
from procedures.steps.marks import close_marks
from procedures.steps.reorg_steps import IndexToFill, begin_reorg, continue_reorg, violation
from procedures.steps.requirements import ends_if_missing
from procedures.steps.transitions import is_settled, read_table, settle

REORG_MS = 86_400_000
"""Limit of a reorg of any size; an operator may cancel it earlier."""


async def begin_index(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Adds the index, or ends at once if it exists already."""
    snapshot, info, draft = await read_draft(state, context)
    if not draft.moves:
        return Done(state, result_of(state, info))
    return entering(state, snapshot, info, draft)


async def begin_validation(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Begins the validation, or ends at once if the index is public."""
    _, info, draft = await read_draft(state, context)
    if not draft.moves:
        return Done(state, result_of(state, info))
    return Goto("settle", state.model_copy(update={"moves": draft.moves, "has_entered": True}))


async def settle_first(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Publishes changes made since the index was added, for which no one has waited yet."""
    snapshot, info, _ = await read_table(context, state.table_id)
    if is_settled(info):
        return Goto("mark", state)
    return Goto("settle", state, await settle(context, snapshot, info))


async def mark(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Opens marks: rows can then be read as of a moment at which every holder wrote entries."""
    _, info, route = await read_table(context, state.table_id)
    reorg = await begin_reorg(context, IndexToFill.of(info, route, state.index_id))
    return Goto("fill", state.model_copy(update={"reorg": reorg}))


async def unmark(state: AlterTable, context: Context) -> None:
    await close_marks(context, state.table_id)


async def fill(state: AlterTable, context: Context) -> Outcome[AlterTable]:
    """Has jobs make the entries of rows that were written before the index was write-only, some
    regions at a time, or ends the fill once all have theirs."""
    assert state.reorg is not None, "marked"
    _, info, route = await read_table(context, state.table_id)
    table = IndexToFill.of(info, route, state.index_id)
    after = await continue_reorg(context, table, state.reorg)
    if after is None:
        return await _filled(state, context, table, state.reorg)
    if after.duplicates and state.first is not None and not state.is_lenient:
        raise violation(table.info, table.index, after)  # it goes, so nobody needs all of them
    return Goto("fill", state.model_copy(update={"reorg": after}))


async def _filled(
    state: AlterTable, context: Context, table: IndexToFill, reorg: IndexReorg
) -> Outcome[AlterTable]:
    if reorg.has_marks:
        await close_marks(context, state.table_id)
    if not reorg.duplicates:
        return Goto("commit", state)
    if not state.is_lenient:
        raise violation(table.info, table.index, reorg)
    return Done(state, result_of(state, table.info))


def _name(stored: Mapping[str, Any]) -> str:
    (operation,) = stored["operations"]
    return str(operation["name"])


def _names(stored: Mapping[str, Any]) -> str:
    return ", ".join(str(operation["name"]) for operation in stored["operations"])


def _index_names(state: AlterTable) -> tuple[str, ...]:
    return tuple(
        operation.name for operation in state.operations if isinstance(operation, DropIndex)
    )


def _reorg(state: AlterTable) -> IndexReorg | None:
    return state.reorg


_FILLING = {
    "mark": Step(mark, to=frozenset({"fill"}), undo=unmark, waits=True),
    "fill": Step(fill, to=frozenset({"fill", "commit"}), ends=True, waits=True, paced=True),
}
CREATE_INDEX = replace(
    ALTER_TABLE,
    name="create_index",
    steps={
        "begin": Step(begin_index, to=frozenset({"advance"}), ends=True),
        "advance": Step(advance, to=frozenset({"advance", "mark"}), undo=go_back, waits=True),
        **_FILLING,
        "commit": Step(commit, to=frozenset({"finish"})),
        "finish": Step(finish, waits=True),
    },
    success=201,
    purpose="adds one index to a table and fills it while statements run.",
    deadline_ms=REORG_MS,
    index=IndexOf(_name, _reorg),
    change=_names,
)
VALIDATE_INDEX = replace(
    CREATE_INDEX,
    name="validate_index",
    steps={
        "begin": Step(begin_validation, to=frozenset({"settle"}), ends=True),
        "settle": Step(settle_first, to=frozenset({"settle", "mark"}), waits=True),
        **_FILLING,
        "commit": Step(commit, to=frozenset({"finish"})),
        "finish": Step(finish, waits=True),
    },
    success=200,
    purpose="makes a write-only index public once its rows agree with its definition.",
)
DROP_INDEX = replace(
    ALTER_TABLE,
    name="drop_index",
    steps={
        "begin": Step(
            ends_if_missing(begin, resource, _index_names), to=frozenset({"advance"}), ends=True
        ),
        "advance": Step(
            advance, to=frozenset({"advance", "grace", "commit"}), undo=go_back, waits=True
        ),
        "grace": Step(grace, to=frozenset({"grace", "commit"}), waits=True),
        "commit": Step(commit, to=frozenset({"finish"})),
        "finish": Step(finish, to=frozenset({"finish"}), ends=True, waits=True),
    },
    success=204,
    purpose="drops indexes of a table; their entries are deleted after the point of no return.",
    change=_names,
)
