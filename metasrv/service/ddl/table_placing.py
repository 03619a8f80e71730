"""Resolution of the placement, storage profile and tablespace that a table names, by the catalog.
Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT,
    DEFAULT_PROFILE,
    PlacementInfo,
    StorageProfile,
)
from keys.model.placing.tablespaces import DEFAULT_TABLESPACE
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, TableInfo, TableRoute
from metasrv.service.bodies.shapes import COPY_NUMBERS
from metasrv.service.nearby import hint
from metasrv.service.requests.placing_names import (
    FullTablespaceName,
    placement_named,
    tablespace_named,
)
from metasrv_base.errors import Conflict, Refused
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.api.changes import SetCopies
from metasrv_base.wire.api.table_rules import number_of
from metasrv_base.wire.api.tables import HashPartition, RangePartition, TableSpec
from procedures.kinds.alter.copies_operations import SetCopiesOperation, must_be_possible
from procedures.ports import NodeView
from procedures.quorum import numbers_of, with_numbers
from procedures.steps.copies.copy_routes import copy_root
from procedures.steps.placing import unmet, why_not

FORMAT = 2
"""The format of a TableInfo with one of these fields."""
LATE_VERSION = 10**9
"""A version of the copies whose folders have names as long as any."""


@frozen
class TablePlacing:
    """The objects that the fields of a spec name."""

    placement: PlacementInfo
    profile: StorageProfile
    tablespace: str | None
    """The tablespace; None for `default`."""
    tablespace_id: int | None

    @property
    def is_default(self) -> bool:
        """Whether the table uses no more of the default placement than every table does."""
        return (self.placement.name, self.profile.name) == (DEFAULT_PLACEMENT, DEFAULT_PROFILE)

    @property
    def placement_name(self) -> str | None:
        """The name that the procedure stores; None: the default placement and profile."""
        return None if self.is_default else self.placement.name

    def fields(self) -> dict[str, Any]:
        """Fields of the TableInfo."""
        named: dict[str, Any] = {"engine": self.profile.engine}
        if self.profile.options:
            named["engine_options"] = self.profile.options
        if not self.is_default:
            named |= {"format": FORMAT, "storage_profile": self.profile.name}
            if self.placement.name != DEFAULT_PLACEMENT:
                named["placement_id"] = self.placement.placement_id
        if self.tablespace_id is not None:
            named |= {"format": FORMAT, "tablespace_id": self.tablespace_id}
        return named


def placing_of(spec: TableSpec, catalog_name: str, catalog: Catalog) -> TablePlacing:
    """Raises NotFound for a placement or tablespace that does not exist, Refused for a storage
    profile that the placement does not have."""
    placement = (
        catalog.placing.default
        if spec.placement in (None, DEFAULT_PLACEMENT)
        else placement_named(catalog, spec.placement)
    )
    if spec.tablespace in (None, DEFAULT_TABLESPACE):
        return TablePlacing(placement, _profile(placement, spec.storage_profile), None, None)
    name = FullTablespaceName(catalog_name, spec.tablespace)
    number = tablespace_named(catalog, name).tablespace_id
    profile = _profile(placement, spec.storage_profile)
    return TablePlacing(placement, profile, spec.tablespace, number)


def _profile(placement: PlacementInfo, name: str | None) -> StorageProfile:
    if name is None:
        return placement.storage_profiles[0]
    profile = placement.profile(name)
    if profile is None:
        names = [each.name for each in placement.storage_profiles]
        raise Refused(
            "invalid-request",
            pointer="/storage_profile",
            found=name,
            expected=f"a storage profile of placement {placement.name}: {', '.join(names)}",
            **hint(name, names),
        )
    return profile


def partition_of_spec(
    spec: TableSpec, placement: PlacementInfo
) -> HashPartition | RangePartition | None:
    """The partitions of a table; of one that says nothing those of its placement, by hash of its
    colocation columns or of its primary key. None: one region."""
    if spec.partition is not None or placement.partitions == 1:
        return spec.partition
    columns = spec.colocation_columns or spec.primary_key
    return HashPartition(by="hash", columns=columns, count=placement.partitions)


def with_copy_numbers(info: TableInfo, spec: TableSpec, placement: PlacementInfo) -> TableInfo:
    """The table with the numbers of copies that the spec names, or else its placement. Raises
    Refused where more must be in sync than there are copies, and for copies of a region whose rows
    are in one process."""
    numbered = with_numbers(info, spec.replicas, spec.min_in_sync, numbers_of(placement))
    must_be_possible(numbered, spec.min_in_sync, "")
    return numbered


def copies_operation(operation: SetCopies, placement: PlacementInfo) -> SetCopiesOperation:
    named = tuple(each for each in COPY_NUMBERS if getattr(operation, each) is not None)
    return SetCopiesOperation(
        named=named,
        replicas=number_of(operation.replicas),
        min_in_sync=number_of(operation.min_in_sync),
        placed_replicas=placement.replicas,
        placed_min_in_sync=placement.min_in_sync,
        reason=operation.reason,
    )


def must_have_nodes(info: TableInfo, placement: PlacementInfo, nodes: Sequence[NodeView]) -> None:
    """Raises Conflict("node-not-eligible") if the table is to have more copies than its placement
    has nodes. Nodes that are dead or full for now count."""
    node_filter = placement.node_filter
    eligible = [node for node in nodes if unmet(node, node_filter) is None]
    if len(eligible) < info.replicas and info.replicas > 1:
        reasons = {
            node.node_id: reason
            for node in nodes
            if node not in eligible
            and (reason := why_not(node, (), info.engine, node_filter)) is not None
        }
        raise too_few_nodes(info.replicas, nodes, reasons)


def too_few_nodes(replicas: int, nodes: Sequence[NodeView], reasons: Mapping[str, str]) -> Conflict:
    """Returns the refusal of more copies than there are nodes for them, with the *reasons* of the
    nodes that take none."""
    facts: dict[str, Any] = {"replicas": replicas, "eligible": len(nodes) - len(reasons)}
    if reasons:
        facts["reason"] = reasons_text(reasons)
    return Conflict("node-not-eligible", **facts, reasons=reasons)


def reasons_text(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{node} is {reason}" for node, reason in reasons.items())


def grown(route: TableRoute, replicas: int, nodes: Sequence[NodeView]) -> TableRoute:
    """The route with as many copies of each region, on nodes with long names: what a stored route
    will have to hold."""
    node = max((each.node_id for each in nodes), key=len, default="")
    root = max((each.root for each in nodes), key=len, default="")

    def with_all(region: RegionRoute) -> RegionRoute:
        copy = RegionCopy(
            node=node, root=copy_root(root, region, LATE_VERSION), role=CopyRole.LEARNER
        )
        missing = max(0, replicas - 1 - len(region.copies))
        return region.with_copies((*region.copies, *[copy] * missing))

    return route.with_regions(tuple(map(with_all, route.region_routes)))
