"""create_, alter_, rename_ and drop_placement: one transaction each, under the placement's name.

A create of a table holds the name too (shared), and compares the placement that it was judged by.
"""

from keys.commit.txn import NOTHING
from keys.model.placing.placements import PlacedTableKey, PlacementInfo, PlacementKey
from keys.model.records import Lock, Resource
from procedures.commands.command import change_of
from procedures.commands.placement_commands import (
    AlterPlacementCommand,
    CreatePlacementCommand,
    DropPlacementCommand,
    PlacementChanges,
    RenamePlacementCommand,
)
from procedures.context import Context
from procedures.locking.locks import exclusive, placement_key
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.steps.requirements import ends_if_missing
from procedures.steps.users import must_be_unused


class CreatePlacement(ProcedureState):
    info: PlacementInfo
    if_not_exists: bool = False
    """An equal placement of that name is success, and nothing is changed."""


class NamedPlacement(ProcedureState):
    """A placement by its name, and the id that the name resolved to."""

    name: str
    placement_id: int


class AlterPlacement(NamedPlacement):
    changes: PlacementChanges


class RenamePlacement(NamedPlacement):
    new_name: str


class DropPlacement(NamedPlacement):
    pass


async def create(state: CreatePlacement, context: Context) -> Outcome[CreatePlacement]:
    info = state.info
    command = CreatePlacementCommand(info, state.if_not_exists)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    stands = snapshot.get(PlacementKey(info.name)) or info
    result = {"placement_id": stands.placement_id, "name": info.name}
    return Done(state, result, txn if txn.entries else NOTHING)


async def alter(state: AlterPlacement, context: Context) -> Outcome[AlterPlacement]:
    catalog = context.ports.applied()
    users = catalog.placing.placed_in(state.placement_id)
    in_use = {profile: catalog.tables[table].info.full_name for table, profile in users.items()}
    command = AlterPlacementCommand(
        state.name, state.placement_id, state.changes, in_use, catalog.revision
    )
    txn = change_of(command, await context.snapshot(*command.keys()))
    return Done(state, _result(state, state.name), txn if txn.entries else NOTHING)


async def rename(state: RenamePlacement, context: Context) -> Outcome[RenamePlacement]:
    command = RenamePlacementCommand(state.name, state.placement_id, state.new_name)
    txn = change_of(command, await context.snapshot(*command.keys()))
    return Done(state, _result(state, state.new_name), txn)


async def drop(state: DropPlacement, context: Context) -> Outcome[DropPlacement]:
    command = DropPlacementCommand(state.name, state.placement_id)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    users = PlacedTableKey.under(state.placement_id)
    await must_be_unused(context, f"placement {state.name}", users)
    return Done(state, _result(state, state.name), txn)


def _result(state: NamedPlacement, name: str) -> dict[str, object]:
    return {"placement_id": state.placement_id, "name": name}


def _resource_of_new(state: CreatePlacement) -> Resource:
    info = state.info
    return Resource(type="placement", id=str(info.placement_id), name=info.name)


def _resource(state: NamedPlacement) -> Resource:
    return Resource(type="placement", id=str(state.placement_id), name=state.name)


def _locks_of_new(state: CreatePlacement) -> tuple[Lock, ...]:
    return (exclusive(placement_key(state.info.name)),)


def _locks(state: NamedPlacement) -> tuple[Lock, ...]:
    return (exclusive(placement_key(state.name)),)


def _locks_of_both(state: RenamePlacement) -> tuple[Lock, ...]:
    names = dict.fromkeys((state.name, state.new_name))
    return tuple(exclusive(placement_key(name)) for name in names)


CREATE_PLACEMENT = Kind(
    name="create_placement",
    state=CreatePlacement,
    steps={"create": Step(create)},
    no_return="create",
    locks=_locks_of_new,
    resource=_resource_of_new,
    success=201,
)
ALTER_PLACEMENT = Kind(
    name="alter_placement",
    state=AlterPlacement,
    steps={"alter": Step(ends_if_missing(alter, _resource))},
    no_return="alter",
    locks=_locks,
    resource=_resource,
    success=200,
)
RENAME_PLACEMENT = Kind(
    name="rename_placement",
    state=RenamePlacement,
    steps={"rename": Step(ends_if_missing(rename, _resource))},
    no_return="rename",
    locks=_locks_of_both,
    resource=_resource,
    success=200,
)
DROP_PLACEMENT = Kind(
    name="drop_placement",
    state=DropPlacement,
    steps={"drop": Step(ends_if_missing(drop, _resource))},
    no_return="drop",
    locks=_locks,
    resource=_resource,
    success=204,
)
