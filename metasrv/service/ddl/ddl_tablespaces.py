"""Create, alter, rename and drop of a tablespace, judged and planned. Pure."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from keys.catalog.catalog import Catalog
from keys.model.placing.tablespaces import TABLESPACES_MAX, TablespaceInfo
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
from metasrv.service.requests.placing_names import FullTablespaceName, tablespace_named
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.placing.placement_rules import (
    validate_placing_rename,
    validate_tablespace,
)
from metasrv_base.wire.api.placing.placements import PlacingRename, TablespacePatch, TablespaceSpec
from metasrv_base.wire.problem.problems import refuse
from procedures.commands.placement_commands import must_not_be_default
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
from procedures.steps.existing import alike, must_be_free
from procedures.steps.users import refuse_if_used

PLACEHOLDER_ID = 0
WHAT = "tablespace"


def create_tablespace(context: RequestContext, catalog: str, spec: TablespaceSpec) -> DdlRequest:
    must_be_identifiers(catalog)
    refuse(validate_tablespace(spec))
    context.require_no_version()
    name = FullTablespaceName(catalog, spec.name)
    return DdlRequest(context, _wants(name), partial(plan_create_tablespace, name, spec))


def alter_tablespace(
    context: RequestContext, name: FullTablespaceName, patch: TablespacePatch
) -> DdlRequest:
    context.require_no_version()
    context = replace(context, if_exists=patch.if_exists)
    plan = partial(plan_alter_tablespace, name, patch.comment)
    request = DdlRequest(context, _wants(name), plan)
    return unless_absent(request, ALTER_TABLESPACE, WHAT, name.full, _exists(name))


def rename_tablespace(
    context: RequestContext, name: FullTablespaceName, request: PlacingRename
) -> DdlRequest:
    refuse(validate_placing_rename(request))
    context.require_no_version()
    context = replace(context, if_exists=request.if_exists)
    new = FullTablespaceName(name.catalog, request.new_name)
    wish = DdlRequest(context, _wants(name, new), partial(plan_rename_tablespace, name, new))
    return unless_absent(wish, RENAME_TABLESPACE, WHAT, name.full, _exists(name))


def drop_tablespace(context: RequestContext, name: FullTablespaceName) -> DdlRequest:
    context.require_no_version()
    request = DdlRequest(context, _wants(name), partial(plan_drop_tablespace, name))
    return unless_absent(request, DROP_TABLESPACE, WHAT, name.full, _exists(name))


def _exists(name: FullTablespaceName) -> Callable[[Catalog], bool]:
    return lambda catalog: name.tablespace in catalog.placing.tablespaces_of(name.catalog)


def _wants(*names: FullTablespaceName) -> Callable[[Catalog], tuple[Lock, ...]]:
    keys = dict.fromkeys(tablespace_key(name.catalog, name.tablespace) for name in names)
    locks = (shared(catalog_key(names[0].catalog)), *map(exclusive, keys))
    return lambda catalog: locks


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
    draft = numbered(PLACEHOLDER_ID)
    existing = spaces.get(name.tablespace)
    existing = alike(draft.info, existing, if_not_exists=spec.if_not_exists)
    if existing is not None:
        return AlreadySatisfied(CREATE_TABLESPACE, existing)
    if len(spaces) >= TABLESPACES_MAX:
        what = f"tablespaces of {name.catalog}"
        raise Conflict("too-many-objects", what=what, count=len(spaces), limit=TABLESPACES_MAX)
    return ProcedureToSubmit(CREATE_TABLESPACE, draft, sequence="catalog_id", numbered=numbered)


def plan_alter_tablespace(
    name: FullTablespaceName, comment: str | None, facts: RequestFacts
) -> ProcedureToSubmit:
    state = AlterTablespace(**_named(name, facts), comment=comment)
    return ProcedureToSubmit(ALTER_TABLESPACE, state)


def plan_rename_tablespace(
    name: FullTablespaceName, new: FullTablespaceName, facts: RequestFacts
) -> ProcedureToSubmit:
    state = RenameTablespace(**_named(name, facts), new_name=new.tablespace)
    must_not_be_default(WHAT, name.full)
    spaces = facts.catalog.placing.tablespaces_of(name.catalog)
    must_be_free(WHAT, new.full, spaces.get(new.tablespace))
    return ProcedureToSubmit(RENAME_TABLESPACE, state)


def plan_drop_tablespace(name: FullTablespaceName, facts: RequestFacts) -> ProcedureToSubmit:
    state = DropTablespace(**_named(name, facts))
    must_not_be_default(WHAT, name.full)
    users = facts.catalog.placing.grouped_in(state.tablespace_id)
    refuse_if_used(f"tablespace {name.full}", users.keys(), facts.catalog)
    return ProcedureToSubmit(DROP_TABLESPACE, state)


def _named(name: FullTablespaceName, facts: RequestFacts) -> dict[str, Any]:
    info = tablespace_named(facts.catalog, name)
    return {
        "catalog": name.catalog,
        "name": name.tablespace,
        "tablespace_id": info.tablespace_id,
    }
