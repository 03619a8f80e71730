"""alter_catalog: changes settings and limits of a catalog while changes of its objects run.

It takes no exclusive lock of the catalog, which would wait for the longest change inside. Limits
are judged at submit (procedures/scheduling/tenant_limits.py), and are in force from then on.
"""

from typing import Any

from pydantic import Field

from keys.catalog.catalog import Catalog
from keys.commit.txn import NOTHING
from keys.model.records import Lock, Resource
from procedures.commands.command import change_of
from procedures.commands.tenant_commands import AlterCatalogCommand, patched
from procedures.context import Context
from procedures.locking.locks import catalog_key, exclusive, shared, tenant_key
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.tenant_claim import TenantClaim


class AlterCatalog(ProcedureState):
    """The named fields alone are changed, in the catalog as it is by then."""

    name: str
    catalog_id: int
    settings: dict[str, Any] = Field(default_factory=dict)
    """Setting -> its new value in JSON form; null: its default."""
    limits: dict[str, Any] = Field(default_factory=dict)
    """Limit -> its new value in JSON form; null: none."""


async def alter(state: AlterCatalog, context: Context) -> Outcome[AlterCatalog]:
    """Changes the settings and limits in one transaction."""
    command = AlterCatalogCommand(state.name, state.catalog_id, state.settings, state.limits)
    txn = change_of(command, await context.snapshot(*command.keys()))
    result = {"catalog_id": state.catalog_id, "name": state.name}
    return Done(state, result, txn if txn.entries else NOTHING)


def locks(state: AlterCatalog) -> tuple[Lock, ...]:
    return (shared(catalog_key(state.name)), exclusive(tenant_key(state.name)))


def resource(state: AlterCatalog) -> Resource:
    return Resource(type="catalog", id=str(state.catalog_id), name=state.name)


def claims(state: AlterCatalog, catalog: Catalog) -> tuple[TenantClaim, ...]:
    info = catalog.catalogs.get(state.name)
    if info is None:
        return ()
    limits = patched(info, state.settings, state.limits).own_limits
    return (TenantClaim(state.name, limits=limits),)


ALTER_CATALOG = Kind(
    name="alter_catalog",
    state=AlterCatalog,
    steps={"alter": Step(alter)},
    no_return="alter",
    locks=locks,
    resource=resource,
    success=200,
    claims=claims,
)
