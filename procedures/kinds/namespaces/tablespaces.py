"""create_, alter_, rename_ and drop_tablespace: one transaction each, under the tablespace's name.

A create of a table holds the name too (shared), and compares the tablespace that it was judged by.
"""

from keys.commit.txn import NOTHING
from keys.model.placing.tablespaces import GroupedTableKey, TablespaceInfo, TablespaceKey
from keys.model.records import Lock, Resource
from procedures.commands.command import change_of
from procedures.commands.tablespace_commands import (
    AlterTablespaceCommand,
    CreateTablespaceCommand,
    DropTablespaceCommand,
    RenameTablespaceCommand,
)
from procedures.context import Context
from procedures.locking.locks import catalog_key, exclusive, shared, tablespace_key
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.steps.requirements import ends_if_missing
from procedures.steps.users import must_be_unused


class CreateTablespace(ProcedureState):
    info: TablespaceInfo
    if_not_exists: bool = False
    """An equal tablespace of that name is success, and nothing is changed."""


class NamedTablespace(ProcedureState):
    """A tablespace by its name, and the id that the name resolved to."""

    catalog: str
    name: str
    tablespace_id: int

    @property
    def full_name(self) -> str:
        return f"{self.catalog}.{self.name}"


class AlterTablespace(NamedTablespace):
    comment: str | None
    """None: it has none from here on."""


class RenameTablespace(NamedTablespace):
    new_name: str


class DropTablespace(NamedTablespace):
    pass


async def create(state: CreateTablespace, context: Context) -> Outcome[CreateTablespace]:
    info = state.info
    command = CreateTablespaceCommand(info, state.if_not_exists)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    stands = snapshot.get(TablespaceKey(info.catalog, info.name)) or info
    result = {"tablespace_id": stands.tablespace_id, "name": f"{info.catalog}.{info.name}"}
    return Done(state, result, txn if txn.entries else NOTHING)


async def alter(state: AlterTablespace, context: Context) -> Outcome[AlterTablespace]:
    command = AlterTablespaceCommand(state.catalog, state.name, state.tablespace_id, state.comment)
    txn = change_of(command, await context.snapshot(*command.keys()))
    return Done(state, _result(state, state.name), txn if txn.entries else NOTHING)


async def rename(state: RenameTablespace, context: Context) -> Outcome[RenameTablespace]:
    command = RenameTablespaceCommand(
        state.catalog, state.name, state.tablespace_id, state.new_name
    )
    txn = change_of(command, await context.snapshot(*command.keys()))
    return Done(state, _result(state, state.new_name), txn)


async def drop(state: DropTablespace, context: Context) -> Outcome[DropTablespace]:
    command = DropTablespaceCommand(state.catalog, state.name, state.tablespace_id)
    txn = change_of(command, await context.snapshot(*command.keys()))
    users = GroupedTableKey.under(state.tablespace_id)
    await must_be_unused(context, f"tablespace {state.full_name}", users)
    return Done(state, _result(state, state.name), txn)


def _result(state: NamedTablespace, name: str) -> dict[str, object]:
    return {"tablespace_id": state.tablespace_id, "name": f"{state.catalog}.{name}"}


def _resource_of_new(state: CreateTablespace) -> Resource:
    info = state.info
    name = f"{info.catalog}.{info.name}"
    return Resource(type="tablespace", id=str(info.tablespace_id), name=name)


def _resource(state: NamedTablespace) -> Resource:
    return Resource(type="tablespace", id=str(state.tablespace_id), name=state.full_name)


def _locks_of_new(state: CreateTablespace) -> tuple[Lock, ...]:
    info = state.info
    return (shared(catalog_key(info.catalog)), exclusive(tablespace_key(info.catalog, info.name)))


def _locks(state: NamedTablespace) -> tuple[Lock, ...]:
    name = tablespace_key(state.catalog, state.name)
    return (shared(catalog_key(state.catalog)), exclusive(name))


def _locks_of_both(state: RenameTablespace) -> tuple[Lock, ...]:
    names = dict.fromkeys((state.name, state.new_name))
    keys = (tablespace_key(state.catalog, name) for name in names)
    return (shared(catalog_key(state.catalog)), *map(exclusive, keys))


CREATE_TABLESPACE = Kind(
    name="create_tablespace",
    state=CreateTablespace,
    steps={"create": Step(create)},
    no_return="create",
    locks=_locks_of_new,
    resource=_resource_of_new,
    success=201,
)
ALTER_TABLESPACE = Kind(
    name="alter_tablespace",
    state=AlterTablespace,
    steps={"alter": Step(ends_if_missing(alter, _resource))},
    no_return="alter",
    locks=_locks,
    resource=_resource,
    success=200,
)
RENAME_TABLESPACE = Kind(
    name="rename_tablespace",
    state=RenameTablespace,
    steps={"rename": Step(ends_if_missing(rename, _resource))},
    no_return="rename",
    locks=_locks_of_both,
    resource=_resource,
    success=200,
)
DROP_TABLESPACE = Kind(
    name="drop_tablespace",
    state=DropTablespace,
    steps={"drop": Step(ends_if_missing(drop, _resource))},
    no_return="drop",
    locks=_locks,
    resource=_resource,
    success=204,
)
