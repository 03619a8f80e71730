"""`GET /v1/export`: a catalog or a schema as the desired state that `POST /v1/apply` takes."""

import asyncio

from keys.catalog.catalog import Catalog
from keys.model.catalogs import CatalogLimits, CatalogSettings
from metasrv.service.catalog.reading import CatalogView, Freshness, view
from metasrv.service.declared.current import SchemaScope, declared_state
from metasrv.service.requests.ddl_request import (
    FullSchemaName,
    must_be_identifiers,
    must_have_catalog,
    schema_named,
)
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Refused
from metasrv_base.wire.api.tenants import TenantLimits, TenantSettings
from metasrv_base.wire.language.declared import OBJECTS_MAX, DeclaredCatalog, DesiredState

DEFAULT = "default"


async def export(
    state: ServerState, catalog_name: str, schema: str | None, freshness: Freshness
) -> tuple[DesiredState, CatalogView]:
    """Returns the definitions of a catalog, or of one *schema* of it.

    Raises NotFound; Refused for more objects than an apply takes.
    """
    must_be_identifiers(catalog_name)
    catalog_view = await view(state, freshness)
    catalog = catalog_view.catalog
    must_have_catalog(catalog, catalog_name)
    if schema is not None:
        schema_named(catalog, FullSchemaName(catalog_name, schema))
    scopes = [
        SchemaScope(of, name)
        for of, name in catalog.schemas
        if of == catalog_name and schema in (None, name)
    ]
    count = sum(len(catalog.names.get((each.catalog, each.schema), ())) for each in scopes)
    if count > OBJECTS_MAX:
        expected = f"at most {OBJECTS_MAX} tables: export one schema at a time"
        raise Refused("invalid-request", expected=expected, found=count)
    exported = await asyncio.to_thread(exported_state, catalog, catalog_name, scopes)
    return exported, catalog_view


def exported_state(catalog: Catalog, name: str, scopes: list[SchemaScope]) -> DesiredState:
    """The declared state, without what every cluster and every catalog begins with, and with no
    placement that its tables do not use."""
    state = declared_state(catalog, [name], scopes)
    (declared,) = state.catalogs
    used = {table.placement for schema in declared.schemas for table in schema.tables}
    return DesiredState(
        placements=tuple(each for each in state.placements if each.name in used),
        catalogs=(_without_defaults(declared),),
    )


def _without_defaults(catalog: DeclaredCatalog) -> DeclaredCatalog:
    spaces = (
        each for each in catalog.tablespaces if each.name != DEFAULT or each.comment is not None
    )
    no_settings = catalog.settings is None or catalog.settings == _default_settings()
    return catalog.model_copy(
        update={
            "settings": None if no_settings else catalog.settings,
            "limits": None if catalog.limits == _default_limits() else catalog.limits,
            "tablespaces": tuple(spaces),
        }
    )


def _default_settings() -> TenantSettings:
    return TenantSettings(**CatalogSettings().model_dump())


def _default_limits() -> TenantLimits:
    return TenantLimits.model_validate(CatalogLimits().model_dump())
