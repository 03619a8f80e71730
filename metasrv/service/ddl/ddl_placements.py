"""Plans the create, alter, rename and drop of a placement. Pure."""

from functools import partial

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import (
    PLACEMENTS_MAX,
    LabelCondition,
    NodeFilter,
    PlacementInfo,
    StorageProfile,
)
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlPlan,
    DdlRequest,
    ProcedureToSubmit,
    RequestFacts,
    must_be_identifiers,
)
from metasrv.service.requests.placing_names import placement_named
from metasrv.service.requests.placing_requests import PlacingRequests, Siblings
from metasrv.service.requests.request_context import RequestContext, VersionTag
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
from metasrv_base.wire.api.table_rules import number_of
from metasrv_base.wire.api.tables import DEFAULT_NUMBER
from metasrv_base.wire.problem.problems import refuse
from procedures.commands.placement_commands import (
    PlacementChanges,
    altered,
    in_format,
    placement_numbers,
)
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

REQUESTS: PlacingRequests[str] = PlacingRequests(
    "placement",
    text=str,
    locks=lambda names: tuple(exclusive(placement_key(name)) for name in names),
    exists=lambda catalog, name: name in catalog.placing.placements,
)


def create_placement(context: RequestContext, spec: PlacementSpec) -> DdlRequest:
    refuse(validate_placement(spec))
    return REQUESTS.create(context, spec.name, partial(plan_create_placement, spec))


def alter_placement(context: RequestContext, name: str, patch: PlacementPatch) -> DdlRequest:
    must_be_identifiers(name)
    refuse(validate_placement_patch(patch))
    plan = partial(plan_alter_placement, context, name, changes_of(patch))
    return REQUESTS.change(context, ALTER_PLACEMENT, (name,), plan, if_exists=patch.if_exists)


def rename_placement(context: RequestContext, name: str, request: PlacingRename) -> DdlRequest:
    must_be_identifiers(name)
    refuse(validate_placing_rename(request))
    names = name, request.new_name
    plan = partial(plan_rename_placement, context, *names)
    return REQUESTS.change(context, RENAME_PLACEMENT, names, plan, if_exists=request.if_exists)


def drop_placement(context: RequestContext, name: str) -> DdlRequest:
    must_be_identifiers(name)
    plan = partial(plan_drop_placement, context, name)
    return REQUESTS.change(context, DROP_PLACEMENT, (name,), plan)


def plan_create_placement(
    spec: PlacementSpec, facts: RequestFacts
) -> ProcedureToSubmit | AlreadySatisfied:
    def numbered(placement_id: int) -> CreatePlacement:
        info = placement_info(spec, placement_id, facts.now_ms)
        return CreatePlacement(info=info, if_not_exists=spec.if_not_exists)

    siblings = Siblings("placements", facts.catalog.placing.placements, PLACEMENTS_MAX)
    return siblings.planned(CREATE_PLACEMENT, "placement_id", numbered)


def plan_alter_placement(
    context: RequestContext, name: str, changes: PlacementChanges, facts: RequestFacts
) -> DdlPlan:
    info = _required(context, name, facts.catalog)
    altered(info, changes, facts.catalog.profiles_in_use(info.placement_id))
    state = AlterPlacement(name=name, placement_id=info.placement_id, changes=changes)
    return ProcedureToSubmit(ALTER_PLACEMENT, state)


def plan_rename_placement(
    context: RequestContext, name: str, new_name: str, facts: RequestFacts
) -> ProcedureToSubmit:
    info = _required(context, name, facts.catalog)
    REQUESTS.must_not_be_default(name)
    REQUESTS.must_be_free(new_name, facts.catalog.placing.placements.get(new_name))
    state = RenamePlacement(name=name, placement_id=info.placement_id, new_name=new_name)
    return ProcedureToSubmit(RENAME_PLACEMENT, state)


def plan_drop_placement(
    context: RequestContext, name: str, facts: RequestFacts
) -> ProcedureToSubmit:
    info = _required(context, name, facts.catalog)
    REQUESTS.must_not_be_default(name)
    users = facts.catalog.placing.placed_in(info.placement_id)
    REQUESTS.must_be_unused(name, users.keys(), facts.catalog)
    state = DropPlacement(name=name, placement_id=info.placement_id)
    return ProcedureToSubmit(DROP_PLACEMENT, state)


def _required(context: RequestContext, name: str, catalog: Catalog) -> PlacementInfo:
    """The placement that bears the name, at the version that the client requires. Raises NotFound
    and Conflict."""
    info = placement_named(catalog, name)
    context.require_version(name, VersionTag("placement", info.placement_id, info.version))
    return info


def placement_info(spec: PlacementSpec, placement_id: int, now_ms: int) -> PlacementInfo:
    numbers = placement_numbers(spec.replicas, spec.min_in_sync)
    info = PlacementInfo(
        placement_id=placement_id,
        name=spec.name,
        **numbers,
        partitions=spec.partitions,
        storage_profiles=tuple(map(_profile, spec.storage_profiles)),
        node_filter=_node_filter(spec.node_filter),
        preferred_zones=spec.preferred_zones,
        comment=spec.comment,
        created_at_ms=now_ms,
    )
    return in_format(info)


def changes_of(patch: PlacementPatch) -> PlacementChanges:
    profiles, nodes = patch.storage_profiles, patch.node_filter
    return PlacementChanges(
        replicas=patch.replicas,
        min_in_sync=number_of(patch.min_in_sync),
        drops_min_in_sync=patch.min_in_sync == DEFAULT_NUMBER,
        reason=patch.reason,
        partitions=patch.partitions,
        storage_profiles=None if profiles is None else tuple(map(_profile, profiles)),
        node_filter=None if nodes is None else _node_filter(nodes),
        preferred_zones=patch.preferred_zones,
        comment=patch.comment,
        drops_comment=patch.comment is None and "comment" in patch.model_fields_set,
    )


def _profile(spec: StorageProfileSpec) -> StorageProfile:
    return StorageProfile(name=spec.name, engine=spec.engine, options=spec.options)


def _node_filter(spec: NodeFilterSpec) -> NodeFilter:
    labels = (LabelCondition(label=each.label, values=each.values) for each in spec.labels)
    return NodeFilter(zones=spec.zones, labels=tuple(labels))
