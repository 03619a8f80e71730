"""rename_table: gives a table another name, in the same schema or another one.

Two tables can also exchange their names, in one transaction, so that each name always has a table.
No node is asked. The rename ends when every frontend has the new name, so that a name means the
same table at all of them.
"""

from keys.model.records import Lock, Resource
from keys.model.tables import TableNameKey
from procedures.commands.command import change_of
from procedures.commands.table_commands import RenameTableCommand
from procedures.context import Context
from procedures.locking.locks import distinct, exclusive, in_schema, name_key, table_key
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.requirements import ends_if_missing


class RenameTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    new_schema: str
    new_name: str
    other_id: int | None = None
    """The table that bears the new name, and takes the old one; None: nobody may bear it."""


async def rename(state: RenameTable, context: Context) -> Outcome[RenameTable]:
    """Renames the table, or exchanges two names, in one transaction."""
    command = RenameTableCommand(
        TableNameKey(state.catalog, state.schema_name, state.name),
        TableNameKey(state.catalog, state.new_schema, state.new_name),
        state.table_id,
        context.client,
        state.other_id,
    )
    return Goto("finish", state, change_of(command, await context.snapshot(*command.keys())))


async def finish(state: RenameTable, context: Context) -> Outcome[RenameTable]:
    """Waits until every frontend has the new name."""
    await context.drained(state.table_id, None)
    full = f"{state.catalog}.{state.new_schema}.{state.new_name}"
    return Done(state, {"table_id": state.table_id, "name": full})


def locks(state: RenameTable) -> tuple[Lock, ...]:
    others = () if state.other_id is None else (exclusive(table_key(state.other_id)),)
    return distinct(
        *in_schema(state.catalog, state.schema_name),
        *in_schema(state.catalog, state.new_schema),
        exclusive(name_key(state.catalog, state.schema_name, state.name)),
        exclusive(name_key(state.catalog, state.new_schema, state.new_name)),
        exclusive(table_key(state.table_id)),
        *others,
    )


def resource(state: RenameTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


RENAME_TABLE = Kind(
    name="rename_table",
    state=RenameTable,
    steps={
        "rename": Step(ends_if_missing(rename, resource), to=frozenset({"finish"}), ends=True),
        "finish": Step(finish, waits=True),
    },
    no_return="rename",
    locks=locks,
    resource=resource,
    change=lambda stored: f"to {stored['new_schema']}.{stored['new_name']}",
    success=200,
)
