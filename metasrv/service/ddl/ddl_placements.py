"""Create, alter, rename and drop of a placement, judged and planned. Pure."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import (
    PLACEMENTS_MAX,
    LabelCondition,
    NodeFilter,
    PlacementInfo,
    StorageProfile,
)
from keys.model.records import Lock
from metasrv.service.requests.absent import unless_absent
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlRequest,
    Judged,
    ProcedureToSubmit,
    RequestFacts,
    must_be_identifiers,
)
from metasrv.service.requests.placing_names import placement_named
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.placing.placement_rules import (
    validate_placement,
    validate_placement_patch,
    validate_placing_rename,
)
from metasrv_base.wire.api.placing.placements import (
    NodeFilterSpec,
    PlacementPatch,
    PlacementSpec,
    PlacingRename,
    StorageProfileSpec,
)
from metasrv_base.wire.problem.problems import refuse
from procedures.commands.placement_commands import PlacementChanges, altered, must_not_be_default
from procedures.kinds.namespaces.placements import (
    ALTER_PLACEMENT,
    CREATE_PLACEMENT,
    DROP_PLACEMENT,
    RENAME_PLACEMENT,
    AlterPlacement,
    CreatePlacement,
    DropPlacement,
    RenamePlacement,
)
from procedures.locking.locks import exclusive, placement_key
from procedures.steps.existing import alike, must_be_free
from procedures.steps.users import refuse_if_used

PLACEHOLDER_ID = 0
WHAT = "placement"


def create_placement(context: RequestContext, spec: PlacementSpec) -> DdlRequest:
    refuse(validate_placement(spec))
    context.require_no_version()
    return DdlRequest(context, _wants(spec.name), partial(plan_create_placement, spec))


def alter_placement(context: RequestContext, name: str, patch: PlacementPatch) -> DdlRequest:
    must_be_identifiers(name)
    refuse(validate_placement_patch(patch))
    context.require_no_version()
    context = replace(context, if_exists=patch.if_exists)
    plan = partial(plan_alter_placement, name, changes_of(patch))
    request = DdlRequest(context, _wants(name), plan)
    return unless_absent(request, ALTER_PLACEMENT, WHAT, name, _exists(name))


def rename_placement(context: RequestContext, name: str, request: PlacingRename) -> DdlRequest:
    must_be_identifiers(name)
    refuse(validate_placing_rename(request))
    context.require_no_version()
    context = replace(context, if_exists=request.if_exists)
    plan = partial(plan_rename_placement, name, request.new_name)
    wish = DdlRequest(context, _wants(name, request.new_name), plan)
    return unless_absent(wish, RENAME_PLACEMENT, WHAT, name, _exists(name))


def drop_placement(context: RequestContext, name: str) -> DdlRequest:
    must_be_identifiers(name)
    context.require_no_version()
    request = DdlRequest(context, _wants(name), partial(plan_drop_placement, name))
    return unless_absent(request, DROP_PLACEMENT, WHAT, name, _exists(name))


def _exists(name: str) -> Callable[[Catalog], bool]:
    return lambda catalog: name in catalog.placing.placements


def _wants(*names: str) -> Callable[[Catalog], tuple[Lock, ...]]:
    locks = tuple(exclusive(placement_key(name)) for name in dict.fromkeys(names))
    return lambda catalog: locks


def plan_create_placement(
    spec: PlacementSpec, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    def numbered(placement_id: int) -> CreatePlacement:
        info = placement_info(spec, placement_id, facts.now_ms)
        return CreatePlacement(info=info, if_not_exists=spec.if_not_exists)

    placements = facts.catalog.placing.placements
    draft = numbered(PLACEHOLDER_ID)
    existing = placements.get(spec.name)
    existing = alike(draft.info, existing, if_not_exists=spec.if_not_exists)
    if existing is not None:
        return AlreadySatisfied(CREATE_PLACEMENT, existing)
    if len(placements) >= PLACEMENTS_MAX:
        count = len(placements)
        raise Conflict("too-many-objects", what="placements", count=count, limit=PLACEMENTS_MAX)
    return ProcedureToSubmit(CREATE_PLACEMENT, draft, sequence="placement_id", numbered=numbered)


def plan_alter_placement(name: str, changes: PlacementChanges, facts: RequestFacts) -> Judged:
    info = placement_named(facts.catalog, name)
    altered(info, changes, facts.catalog.profiles_in_use(info.placement_id))
    state = AlterPlacement(name=name, placement_id=info.placement_id, changes=changes)
    return ProcedureToSubmit(ALTER_PLACEMENT, state)


def plan_rename_placement(name: str, new_name: str, facts: RequestFacts) -> ProcedureToSubmit:
    info = placement_named(facts.catalog, name)
    must_not_be_default(WHAT, name)
    must_be_free(WHAT, new_name, facts.catalog.placing.placements.get(new_name))
    state = RenamePlacement(name=name, placement_id=info.placement_id, new_name=new_name)
    return ProcedureToSubmit(RENAME_PLACEMENT, state)


def plan_drop_placement(name: str, facts: RequestFacts) -> ProcedureToSubmit:
    info = placement_named(facts.catalog, name)
    must_not_be_default(WHAT, name)
    users = facts.catalog.placing.placed_in(info.placement_id)
    refuse_if_used(f"placement {name}", users.keys(), facts.catalog)
    state = DropPlacement(name=name, placement_id=info.placement_id)
    return ProcedureToSubmit(DROP_PLACEMENT, state)


def placement_info(spec: PlacementSpec, placement_id: int, now_ms: int) -> PlacementInfo:
    return PlacementInfo(
        placement_id=placement_id,
        name=spec.name,
        replicas=spec.replicas,
        partitions=spec.partitions,
        storage_profiles=tuple(map(_profile, spec.storage_profiles)),
        node_filter=_node_filter(spec.node_filter),
        comment=spec.comment,
        created_at_ms=now_ms,
    )


def changes_of(patch: PlacementPatch) -> PlacementChanges:
    profiles, nodes = patch.storage_profiles, patch.node_filter
    return PlacementChanges(
        replicas=patch.replicas,
        partitions=patch.partitions,
        storage_profiles=None if profiles is None else tuple(map(_profile, profiles)),
        node_filter=None if nodes is None else _node_filter(nodes),
        comment=patch.comment,
        drops_comment=patch.comment is None and "comment" in patch.model_fields_set,
    )


def _profile(spec: StorageProfileSpec) -> StorageProfile:
    return StorageProfile(name=spec.name, engine=spec.engine, options=spec.options)


def _node_filter(spec: NodeFilterSpec) -> NodeFilter:
    labels = (LabelCondition(label=each.label, values=each.values) for each in spec.labels)
    return NodeFilter(zones=spec.zones, labels=tuple(labels))
