"""Plans the create and drop of a schema. Pure."""

from functools import partial

from keys.catalog.catalog import Catalog
from keys.model.catalogs import SchemaInfo
from keys.model.records import Lock
from metasrv.service.requests.absent import unless_absent
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlRequest,
    FullSchemaName,
    ProcedureToSubmit,
    RequestFacts,
    must_be_identifiers,
    must_have_catalog,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.table_rules import validate_schema
from metasrv_base.wire.api.tables import SchemaSpec
from metasrv_base.wire.problem.problems import refuse
from procedures.kinds.namespaces.create_schema import CREATE_SCHEMA, CreateSchema
from procedures.kinds.namespaces.drop_schema import DROP_SCHEMA, DropSchema
from procedures.locking.locks import catalog_key, exclusive, schema_key, shared
from procedures.steps.existing import alike

PLACEHOLDER_ID = 0


def create_schema(context: RequestContext, catalog: str, spec: SchemaSpec) -> DdlRequest:
    must_be_identifiers(catalog)
    refuse(validate_schema(spec))
    context.require_no_version()
    name = FullSchemaName(catalog, spec.name)
    return DdlRequest(context, partial(_wants, name), partial(plan_create_schema, name, spec))


def drop_schema(context: RequestContext, name: FullSchemaName) -> DdlRequest:
    context.require_no_version()
    request = DdlRequest(
        context, partial(_wants, name), partial(plan_drop_schema, name, context.cascade)
    )

    def exists(catalog: Catalog) -> bool:
        return catalog.is_visible(name.catalog, name.schema)

    return unless_absent(request, DROP_SCHEMA, "schema", name.full, exists)


def _wants(name: FullSchemaName, catalog: Catalog) -> tuple[Lock, ...]:
    return (shared(catalog_key(name.catalog)), exclusive(schema_key(name.catalog, name.schema)))


def plan_create_schema(
    name: FullSchemaName, spec: SchemaSpec, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    must_have_catalog(facts.catalog, name.catalog)

    def numbered(schema_id: int) -> CreateSchema:
        return CreateSchema(
            info=SchemaInfo(
                schema_id=schema_id,
                catalog=name.catalog,
                name=name.schema,
                options=spec.options,
                created_at_ms=facts.now_ms,
            ),
            if_not_exists=spec.if_not_exists,
        )

    draft = numbered(PLACEHOLDER_ID)
    existing = facts.catalog.schemas.get((name.catalog, name.schema))
    existing = alike(draft.info, existing, if_not_exists=spec.if_not_exists)
    if existing is not None:
        return AlreadySatisfied(CREATE_SCHEMA, existing)
    return ProcedureToSubmit(CREATE_SCHEMA, draft, sequence="schema_id", numbered=numbered)


def plan_drop_schema(name: FullSchemaName, cascade: bool, facts: RequestFacts) -> ProcedureToSubmit:
    info = facts.catalog.schema(name.catalog, name.schema)
    count = len(facts.catalog.names.get((name.catalog, name.schema), ()))
    if count and not cascade:
        raise Conflict("not-empty", name=name.full, count=count)
    state = DropSchema(
        catalog=name.catalog, name=name.schema, schema_id=info.schema_id, cascade=cascade
    )
    return ProcedureToSubmit(DROP_SCHEMA, state)
