"""create_catalog: one name at the top; schemas come into it one by one."""

from keys.commit.txn import NOTHING
from keys.model.catalogs import CatalogInfo, CatalogNameKey
from keys.model.records import Lock, Resource
from procedures.commands.command import change_of
from procedures.commands.namespace_commands import CreateCatalogCommand
from procedures.context import Context
from procedures.locking.locks import catalog_key, exclusive
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step


class CreateCatalog(ProcedureState):
    info: CatalogInfo
    if_not_exists: bool = False
    """A catalog of that name with the same options is success, and nothing is changed."""


async def create(state: CreateCatalog, context: Context) -> Outcome[CreateCatalog]:
    info = state.info
    command = CreateCatalogCommand(info, state.if_not_exists)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    stands = snapshot.get(CatalogNameKey(info.name)) or info
    result = {"catalog_id": stands.catalog_id, "name": info.name}
    return Done(state, result, txn if txn.entries else NOTHING)


def locks(state: CreateCatalog) -> tuple[Lock, ...]:
    return (exclusive(catalog_key(state.info.name)),)


def resource(state: CreateCatalog) -> Resource:
    return Resource(type="catalog", id=str(state.info.catalog_id), name=state.info.name)


CREATE_CATALOG = Kind(
    name="create_catalog",
    state=CreateCatalog,
    steps={"create": Step(create)},
    no_return="create",
    locks=locks,
    resource=resource,
    success=201,
)
