"""create_schema: one name under a catalog."""

from keys.commit.change import change
from keys.model.catalogs import CatalogNameKey, SchemaInfo, SchemaNameKey
from keys.model.log import SchemaCreated
from keys.model.records import Lock, Resource
from metasrv_base.errors import NotFound
from procedures.context import Context
from procedures.locking.locks import catalog_key, exclusive, schema_key, shared
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.steps.existing import alike


class CreateSchema(ProcedureState):
    info: SchemaInfo
    if_not_exists: bool = False
    """A schema of that name with the same options is success, and nothing is changed."""


async def create(state: CreateSchema, context: Context) -> Outcome[CreateSchema]:
    info = state.info
    catalog, key = CatalogNameKey(info.catalog), SchemaNameKey(info.catalog, info.name)
    snapshot = await context.snapshot(catalog, key)
    if snapshot.get(catalog) is None:
        raise NotFound(what="catalog", name=info.catalog)
    full = f"{info.catalog}.{info.name}"
    existing = alike(info, snapshot.get(key), if_not_exists=state.if_not_exists)
    if existing is not None:
        return Done(state, {"schema_id": existing.schema_id, "name": full})
    txn = change(snapshot, SchemaCreated(info=info))
    return Done(state, {"schema_id": info.schema_id, "name": full}, txn)


def locks(state: CreateSchema) -> tuple[Lock, ...]:
    info = state.info
    return (shared(catalog_key(info.catalog)), exclusive(schema_key(info.catalog, info.name)))


def resource(state: CreateSchema) -> Resource:
    info = state.info
    return Resource(type="schema", id=str(info.schema_id), name=f"{info.catalog}.{info.name}")


CREATE_SCHEMA = Kind(
    name="create_schema",
    state=CreateSchema,
    steps={"create": Step(create)},
    no_return="create",
    locks=locks,
    resource=resource,
    success=201,
)
