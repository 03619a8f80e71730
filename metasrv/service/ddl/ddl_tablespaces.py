"""Plans the create, alter, rename and drop of a tablespace. Pure."""

from functools import partial
from typing import Any

from keys.model.placing.tablespaces import TABLESPACES_MAX, TablespaceInfo
from keys.model.records import Lock
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlRequest,
    ProcedureToSubmit,
    RequestFacts,
    must_be_identifiers,
    must_have_catalog,
)
from metasrv.service.requests.placing_names import FullTablespaceName, tablespace_named
from metasrv.service.requests.placing_requests import PlacingRequests, Siblings
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.wire.api.placing.placement_rules import (
    validate_placing_rename,
    validate_tablespace,
)
from metasrv_base.wire.api.placing.placements import PlacingRename, TablespacePatch, TablespaceSpec
from metasrv_base.wire.problem.problems import refuse
from procedures.kinds.namespaces.tablespaces import (
    ALTER_TABLESPACE,
    CREATE_TABLESPACE,
    DROP_TABLESPACE,
    RENAME_TABLESPACE,
    AlterTablespace,
    CreateTablespace,
    DropTablespace,
    RenameTablespace,
)
from procedures.locking.locks import catalog_key, exclusive, shared, tablespace_key


def create_tablespace(context: RequestContext, catalog: str, spec: TablespaceSpec) -> DdlRequest:
    must_be_identifiers(catalog)
    refuse(validate_tablespace(spec))
    name = FullTablespaceName(catalog, spec.name)
    return REQUESTS.create(context, name, partial(plan_create_tablespace, name, spec))


def alter_tablespace(
    context: RequestContext, name: FullTablespaceName, patch: TablespacePatch
) -> DdlRequest:
    context.require_no_version()
    plan = partial(plan_alter_tablespace, name, patch.comment)
    return REQUESTS.change(context, ALTER_TABLESPACE, (name,), plan, if_exists=patch.if_exists)


def rename_tablespace(
    context: RequestContext, name: FullTablespaceName, request: PlacingRename
) -> DdlRequest:
    context.require_no_version()
    refuse(validate_placing_rename(request))
    names = name, FullTablespaceName(name.catalog, request.new_name)
    plan = partial(plan_rename_tablespace, *names)
    return REQUESTS.change(context, RENAME_TABLESPACE, names, plan, if_exists=request.if_exists)


def drop_tablespace(context: RequestContext, name: FullTablespaceName) -> DdlRequest:
    context.require_no_version()
    return REQUESTS.change(context, DROP_TABLESPACE, (name,), partial(plan_drop_tablespace, name))


def _locks(names: tuple[FullTablespaceName, ...]) -> tuple[Lock, ...]:
    keys = (tablespace_key(name.catalog, name.tablespace) for name in names)
    return (shared(catalog_key(names[0].catalog)), *map(exclusive, keys))


REQUESTS: PlacingRequests[FullTablespaceName] = PlacingRequests(
    "tablespace",
    text=lambda name: name.full,
    locks=_locks,
    exists=lambda catalog, name: name.tablespace in catalog.placing.tablespaces_of(name.catalog),
)


def plan_create_tablespace(
    name: FullTablespaceName, spec: TablespaceSpec, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    must_have_catalog(facts.catalog, name.catalog)

    def numbered(tablespace_id: int) -> CreateTablespace:
        info = TablespaceInfo(
            tablespace_id=tablespace_id,
            catalog=name.catalog,
            name=name.tablespace,
            comment=spec.comment,
            created_at_ms=facts.now_ms,
        )
        return CreateTablespace(info=info, if_not_exists=spec.if_not_exists)

    spaces = facts.catalog.placing.tablespaces_of(name.catalog)
    siblings = Siblings(f"tablespaces of {name.catalog}", spaces, TABLESPACES_MAX)
    return siblings.planned(CREATE_TABLESPACE, "catalog_id", numbered)


def plan_alter_tablespace(
    name: FullTablespaceName, comment: str | None, facts: RequestFacts
) -> ProcedureToSubmit:
    state = AlterTablespace(**_named(name, facts), comment=comment)
    return ProcedureToSubmit(ALTER_TABLESPACE, state)


def plan_rename_tablespace(
    name: FullTablespaceName, new: FullTablespaceName, facts: RequestFacts
) -> ProcedureToSubmit:
    state = RenameTablespace(**_named(name, facts), new_name=new.tablespace)
    REQUESTS.must_not_be_default(name)
    spaces = facts.catalog.placing.tablespaces_of(name.catalog)
    REQUESTS.must_be_free(new, spaces.get(new.tablespace))
    return ProcedureToSubmit(RENAME_TABLESPACE, state)


def plan_drop_tablespace(name: FullTablespaceName, facts: RequestFacts) -> ProcedureToSubmit:
    state = DropTablespace(**_named(name, facts))
    REQUESTS.must_not_be_default(name)
    users = facts.catalog.placing.grouped_in(state.tablespace_id)
    REQUESTS.must_be_unused(name, users.keys(), facts.catalog)
    return ProcedureToSubmit(DROP_TABLESPACE, state)


def _named(name: FullTablespaceName, facts: RequestFacts) -> dict[str, Any]:
    info = tablespace_named(facts.catalog, name)
    return {
        "catalog": name.catalog,
        "name": name.tablespace,
        "tablespace_id": info.tablespace_id,
    }
