"""create_catalog: one name at the top; schemas come into it one by one."""

from keys.commit.change import change
from keys.model.catalogs import CatalogInfo, CatalogNameKey
from keys.model.log import CatalogCreated
from keys.model.records import Lock, Resource
from procedures.context import Context
from procedures.locking.locks import catalog_key, exclusive
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.steps.existing import alike


class CreateCatalog(ProcedureState):
    info: CatalogInfo
    if_not_exists: bool = False
    """A catalog of that name with the same options is success, and nothing is changed."""


async def create(state: CreateCatalog, context: Context) -> Outcome[CreateCatalog]:
    info = state.info
    key = CatalogNameKey(info.name)
    snapshot = await context.snapshot(key)
    existing = alike(info, snapshot.get(key), if_not_exists=state.if_not_exists)
    if existing is not None:
        return Done(state, {"catalog_id": existing.catalog_id, "name": info.name})
    txn = change(snapshot, CatalogCreated(info=info))
    return Done(state, {"catalog_id": info.catalog_id, "name": info.name}, txn)


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
