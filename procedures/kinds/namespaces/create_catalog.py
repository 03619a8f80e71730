"""create_catalog: creates a catalog and its default schema in one transaction."""

from keys.catalog.catalog import Catalog
from keys.commit.txn import NOTHING
from keys.model.catalogs import CatalogInfo, CatalogNameKey, SchemaInfo
from keys.model.records import Lock, Resource
from procedures.commands.command import change_of
from procedures.commands.namespace_commands import CreateCatalogCommand
from procedures.context import Context
from procedures.locking.locks import catalog_key, exclusive
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.tenant_claim import TenantClaim


class CreateCatalog(ProcedureState):
    info: CatalogInfo
    if_not_exists: bool = False
    """A catalog of that name with the same options, settings and limits is success, and nothing is
    changed."""
    default_schema: SchemaInfo | None = None
    """The schema that is created with it; None in a procedure of a server that made catalogs
    without a schema."""


async def create(state: CreateCatalog, context: Context) -> Outcome[CreateCatalog]:
    """Creates the catalog and its default schema, or writes nothing if `if_not_exists` finds it."""
    info = state.info
    command = CreateCatalogCommand(info, state.if_not_exists, state.default_schema)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    existing = snapshot.get(CatalogNameKey(info.name)) or info
    result = {"catalog_id": existing.catalog_id, "name": info.name}
    return Done(state, result, txn if txn.entries else NOTHING)


def locks(state: CreateCatalog) -> tuple[Lock, ...]:
    return (exclusive(catalog_key(state.info.name)),)


def resource(state: CreateCatalog) -> Resource:
    return Resource(type="catalog", id=str(state.info.catalog_id), name=state.info.name)


def claims(state: CreateCatalog, catalog: Catalog) -> tuple[TenantClaim, ...]:
    info = state.info
    return () if info.limits is None else (TenantClaim(info.name, limits=info.limits),)


CREATE_CATALOG = Kind(
    name="create_catalog",
    state=CreateCatalog,
    steps={"create": Step(create)},
    no_return="create",
    locks=locks,
    resource=resource,
    success=201,
    claims=claims,
)
