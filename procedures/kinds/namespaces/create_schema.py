"""create_schema: creates an empty schema in a catalog, in one transaction."""

from keys.commit.txn import NOTHING
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.records import Lock, Resource
from procedures.commands.command import change_of
from procedures.commands.namespace_commands import CreateSchemaCommand
from procedures.context import Context
from procedures.locking.locks import catalog_key, exclusive, schema_key, shared
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step


class CreateSchema(ProcedureState):
    info: SchemaInfo
    if_not_exists: bool = False
    """A schema of that name with the same options is success, and nothing is changed."""


async def create(state: CreateSchema, context: Context) -> Outcome[CreateSchema]:
    """Creates the schema, or writes nothing if `if_not_exists` finds it."""
    info = state.info
    command = CreateSchemaCommand(info, state.if_not_exists)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    existing = snapshot.get(SchemaNameKey(info.catalog, info.name)) or info
    result = {"schema_id": existing.schema_id, "name": f"{info.catalog}.{info.name}"}
    return Done(state, result, txn if txn.entries else NOTHING)


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
