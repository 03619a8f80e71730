"""Placements and tablespaces as they are and as they are declared. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from metasrv.service.declared.in_place import DEFAULT
from metasrv.service.declared.matching import matched
from metasrv.service.declared.operations import DeclaredPlan, ObjectName
from metasrv.service.declared.table_difference import DECLARED, TablePair
from metasrv_base.wire.api import batches
from metasrv_base.wire.api.placing.placements import PlacementShape, PlacementSpec, TablespaceSpec
from metasrv_base.wire.api.tables import DEFAULT_NUMBER
from metasrv_base.wire.language.declared import DeclaredCatalog, DeclaredPlacement, DesiredState
from procedures.quorum import said_minimum

PATCHED = (
    "replicas",
    "min_in_sync",
    "storage_profiles",
    "node_filter",
    "preferred_zones",
    "comment",
)


@dataclass(frozen=True, slots=True)
class DeclaredPlacing:
    """Placements after all renames."""

    renames: Mapping[str, str]
    partitions: Mapping[str, int]
    """New name -> regions of a table that says nothing of its partitions."""

    def of(self, pair: TablePair, spaces: Mapping[str, str]) -> TablePair:
        """The pair with the new names where the table as it is has the earlier ones. *spaces*:
        renames of tablespaces of its catalog."""
        current = pair.current
        if not pair.is_new and (self.renames or spaces):
            placement, space = current.placement, current.tablespace
            new = {
                "placement": None if placement is None else self.renames.get(placement, placement),
                "tablespace": None if space is None else spaces.get(space, space),
            }
            current = current.model_copy(update=new)
        partitions = self.partitions.get(current.placement or DEFAULT, 1)
        return replace(pair, current=current, partitions=partitions)


def placement_operations(
    current: DesiredState, desired: DesiredState, plan: DeclaredPlan
) -> DeclaredPlacing:
    there = {each.name: each for each in current.placements}
    names = matched(there, desired.placements)
    for position, reason in names.faults:
        plan.refuse(f"/placements/{position}/renamed_from", reason)
    for now, new in names.renames.items():
        rename = batches.PlacementToRename(placement=now, new_name=new)
        command = batches.RenamesPlacement(rename_placement=rename)
        plan.add(ObjectName("placement", new), command, f"rename from {now}")
    for position, placement in enumerate(desired.placements):
        now_named = names.current.get(placement.name)
        if now_named is None:
            shape = {field: getattr(placement, field) for field in PlacementShape.model_fields}
            create = batches.CreatesPlacement(create_placement=PlacementSpec(**shape))
            plan.add(ObjectName("placement", placement.name), create, "create placement")
        else:
            _alter(there[now_named], placement, f"/placements/{position}", plan)
    partitions = {
        names.renames.get(each.name, each.name): each.partitions for each in there.values()
    }
    made = {each.name: each.partitions for each in desired.placements}
    return DeclaredPlacing(names.renames, {**made, **partitions})


def _alter(
    now: DeclaredPlacement, declared: DeclaredPlacement, pointer: str, plan: DeclaredPlan
) -> None:
    if now.partitions != declared.partitions:
        plan.refuse(f"{pointer}/partitions", f"they stay {now.partitions}: make another placement")
    changed: dict[str, Any] = {
        field: getattr(declared, field)
        for field in PATCHED
        if _value(now, field) != _value(declared, field)
    }
    if changed:
        if "min_in_sync" in changed:
            changed["min_in_sync"] = declared.min_in_sync or DEFAULT_NUMBER
        reason = DECLARED if {"replicas", "min_in_sync"} & changed.keys() else None
        patch = batches.PlacementToAlter(placement=declared.name, **changed, reason=reason)
        command = batches.AltersPlacement(alter_placement=patch)
        plan.add(ObjectName("placement", declared.name), command, f"set {', '.join(changed)}")


def _value(placement: DeclaredPlacement, field: str) -> object:
    """A field in a form in which `equals` and `in` of one value are alike, and a majority of the
    copies is null."""
    if field == "node_filter":
        nodes = placement.node_filter
        return nodes.zones, tuple((each.label, each.values) for each in nodes.labels)
    if field == "min_in_sync":
        return said_minimum(placement.replicas, placement.min_in_sync)
    return getattr(placement, field)


def space_operations(
    now: DeclaredCatalog, declared: DeclaredCatalog, pointer: str, plan: DeclaredPlan
) -> Mapping[str, str]:
    """Adds the operations of the tablespaces of a catalog; returns their renames."""
    catalog, there = declared.name, {each.name: each for each in now.tablespaces}
    names = matched(there, declared.tablespaces)
    for position, reason in names.faults:
        plan.refuse(f"{pointer}/tablespaces/{position}/renamed_from", reason)
    for old, new in names.renames.items():
        rename = batches.TablespaceToRename(catalog=catalog, tablespace=old, new_name=new)
        command = batches.RenamesTablespace(rename_tablespace=rename)
        plan.add(ObjectName("tablespace", f"{catalog}.{new}"), command, f"rename from {old}")
    for space in declared.tablespaces:
        target = ObjectName("tablespace", f"{catalog}.{space.name}")
        now_named = names.current.get(space.name)
        if now_named is None:
            spec = TablespaceSpec(name=space.name, comment=space.comment)
            made = batches.TablespaceToCreate(catalog=catalog, tablespace=spec)
            create = batches.CreatesTablespace(create_tablespace=made)
            plan.add(target, create, "create tablespace")
        elif there[now_named].comment != space.comment:
            alter = batches.TablespaceToAlter(
                catalog=catalog, tablespace=space.name, comment=space.comment
            )
            plan.add(target, batches.AltersTablespace(alter_tablespace=alter), "set comment")
    return names.renames
