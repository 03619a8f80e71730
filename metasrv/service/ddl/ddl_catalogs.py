"""Create and drop of a catalog, judged and planned. Pure."""

from functools import partial

from keys.catalog.catalog import Catalog
from keys.model.catalogs import CatalogInfo
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
from metasrv_base.wire.problem.problems import refuse
from procedures.kinds.namespaces.create_catalog import CREATE_CATALOG, CreateCatalog
from procedures.kinds.namespaces.drop_catalog import DROP_CATALOG, DropCatalog
from procedures.locking.locks import catalog_key, exclusive
from procedures.steps.existing import alike

PLACEHOLDER_ID = 0


def create_catalog(context: RequestContext, spec: CatalogSpec) -> DdlRequest:
    refuse(validate_schema(spec))
    context.require_no_version()
    return DdlRequest(context, partial(_wants, spec.name), partial(plan_create_catalog, spec))


def drop_catalog(context: RequestContext, name: str) -> DdlRequest:
    must_be_identifiers(name)
    context.require_no_version()
    request = DdlRequest(
        context, partial(_wants, name), partial(plan_drop_catalog, name, context.cascade)
    )

    def exists(catalog: Catalog) -> bool:
        return name in catalog.catalogs

    return unless_absent(request, DROP_CATALOG, "catalog", name, exists)


def _wants(name: str, catalog: Catalog) -> tuple[Lock, ...]:
    return (exclusive(catalog_key(name)),)


def plan_create_catalog(
    spec: CatalogSpec, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    def numbered(catalog_id: int) -> CreateCatalog:
        info = CatalogInfo(
            catalog_id=catalog_id,
            name=spec.name,
            options=spec.options,
            created_at_ms=facts.now_ms,
        )
        return CreateCatalog(info=info, if_not_exists=spec.if_not_exists)

    draft = numbered(PLACEHOLDER_ID)
    existing = facts.catalog.catalogs.get(spec.name)
    existing = alike(draft.info, existing, if_not_exists=spec.if_not_exists)
    if existing is not None:
        return AlreadySatisfied(CREATE_CATALOG, existing)
    return ProcedureToSubmit(CREATE_CATALOG, draft, sequence="catalog_id", numbered=numbered)


def plan_drop_catalog(name: str, cascade: bool, facts: RequestFacts) -> ProcedureToSubmit:
    must_have_catalog(facts.catalog, name)
    count = sum(1 for catalog, _ in facts.catalog.schemas if catalog == name)
    if count and not cascade:
        raise Conflict("not-empty", name=name, count=count)
    info = facts.catalog.catalogs[name]
    return ProcedureToSubmit(
        DROP_CATALOG, DropCatalog(name=name, catalog_id=info.catalog_id, cascade=cascade)
    )
