"""Plans the create, alter and drop of a catalog. Pure."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from keys.catalog.catalog import Catalog
from keys.model.catalogs import DEFAULT_SCHEMA, CatalogInfo, SchemaInfo
from keys.model.records import Lock
from metasrv.service.requests.absent import unless_absent
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlRequest,
    ProcedureToSubmit,
    RequestFacts,
    must_be_identifiers,
    must_have_catalog,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.table_rules import validate_schema
from metasrv_base.wire.api.tables import CatalogSpec
from metasrv_base.wire.api.tenants import CatalogPatch, named, tenant_errors
from metasrv_base.wire.problem.problems import refuse
from procedures.commands.tenant_commands import patched
from procedures.kinds.namespaces.alter_catalog import ALTER_CATALOG, AlterCatalog
from procedures.kinds.namespaces.create_catalog import CREATE_CATALOG, CreateCatalog
from procedures.kinds.namespaces.drop_catalog import DROP_CATALOG, DropCatalog
from procedures.locking.locks import catalog_key, exclusive, shared, tenant_key
from procedures.steps.existing import alike

PLACEHOLDER_ID = 0
SEQUENCES = ("catalog_id", "schema_id")
"""Sequences of the ids that a new catalog takes."""


def create_catalog(context: RequestContext, spec: CatalogSpec) -> DdlRequest:
    refuse((*validate_schema(spec), *tenant_errors(spec.settings, spec.limits)))
    context.require_no_version()
    return DdlRequest(context, partial(_wants, spec.name), partial(plan_create_catalog, spec))


def drop_catalog(context: RequestContext, name: str) -> DdlRequest:
    must_be_identifiers(name)
    context.require_no_version()
    request = DdlRequest(
        context, partial(_wants, name), partial(plan_drop_catalog, name, context.cascade)
    )
    return unless_absent(request, DROP_CATALOG, "catalog", name, _exists(name))


def _exists(name: str) -> Callable[[Catalog], bool]:
    return lambda catalog: name in catalog.catalogs


def _wants(name: str, catalog: Catalog) -> tuple[Lock, ...]:
    return (exclusive(catalog_key(name)),)


def plan_create_catalog(
    spec: CatalogSpec, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    def numbered(catalog_id: int, schema_id: int) -> CreateCatalog:
        info = CatalogInfo(
            catalog_id=catalog_id,
            name=spec.name,
            options=spec.options,
            created_at_ms=facts.now_ms,
        )
        schema = SchemaInfo(
            schema_id=schema_id,
            catalog=spec.name,
            name=DEFAULT_SCHEMA,
            created_at_ms=facts.now_ms,
        )
        tenant = patched(info, named(spec.settings), named(spec.limits))
        return CreateCatalog(info=tenant, if_not_exists=spec.if_not_exists, default_schema=schema)

    draft = numbered(PLACEHOLDER_ID, PLACEHOLDER_ID)
    existing = facts.catalog.catalogs.get(spec.name)
    existing = alike(draft.info, existing, if_not_exists=spec.if_not_exists)
    if existing is not None:
        return AlreadySatisfied(CREATE_CATALOG, existing)

    def renumbered(next_id: Callable[[str], int]) -> CreateCatalog:
        return numbered(*map(next_id, SEQUENCES))

    return ProcedureToSubmit(CREATE_CATALOG, draft, sequences=SEQUENCES, renumbered=renumbered)


def alter_catalog(context: RequestContext, name: str, patch: CatalogPatch) -> DdlRequest:
    must_be_identifiers(name)
    refuse(tenant_errors(patch.settings, patch.limits))
    context.require_no_version()

    def locks(catalog: Catalog) -> tuple[Lock, ...]:
        return (shared(catalog_key(name)), exclusive(tenant_key(name)))

    context = replace(context, if_exists=patch.if_exists)
    request = DdlRequest(context, locks, partial(plan_alter_catalog, name, patch))
    return unless_absent(request, ALTER_CATALOG, "catalog", name, _exists(name))


def plan_alter_catalog(
    name: str, patch: CatalogPatch, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    must_have_catalog(facts.catalog, name)
    info = facts.catalog.catalogs[name]
    settings, limits = named(patch.settings), named(patch.limits)
    if patched(info, settings, limits) == info:
        return AlreadySatisfied(ALTER_CATALOG, info)
    state = AlterCatalog(name=name, catalog_id=info.catalog_id, settings=settings, limits=limits)
    return ProcedureToSubmit(ALTER_CATALOG, state)


def plan_drop_catalog(name: str, cascade: bool, facts: RequestFacts) -> ProcedureToSubmit:
    must_have_catalog(facts.catalog, name)
    held = [key for key in facts.catalog.schemas if key[0] == name]
    default = (name, DEFAULT_SCHEMA)
    is_new = held == [default] and not facts.catalog.names.get(default)
    count = 0 if is_new else len(held)
    if count and not cascade:
        raise Conflict("not-empty", name=name, count=count)
    info = facts.catalog.catalogs[name]
    return ProcedureToSubmit(
        DROP_CATALOG, DropCatalog(name=name, catalog_id=info.catalog_id, cascade=cascade)
    )
