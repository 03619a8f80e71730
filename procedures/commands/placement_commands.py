"""Commands about placements."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import not_
from typing import Any

from pydantic import Field

from keys.commit.entry_writes import MetadataView
from keys.key import Key, Range
from keys.model.log import (
    Entry,
    PlacementAltered,
    PlacementCreated,
    PlacementDropped,
    PlacementRenamed,
)
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT,
    DEFAULT_PROFILE,
    NodeFilter,
    PlacedTableKey,
    PlacementInfo,
    PlacementKey,
    StorageProfile,
)
from keys.value import StoredPart, is_none
from metasrv_base.errors import Conflict, Refused
from metasrv_base.wire.api.placing.placement_rules import unfit_zones
from metasrv_base.wire.problem.problems import FieldError
from procedures.commands.command import CatalogCommand
from procedures.commands.placing_objects import (
    IS_DEFAULT,
    ChangeCommand,
    DropCommand,
    ObjectOfPlacing,
    RenameCommand,
)
from procedures.quorum import (
    REASON_NEEDED,
    CopyNumbers,
    needs_reason,
    numbers_of,
    said_minimum,
)
from procedures.steps.existing import alike

MINIMUM_FORMAT = 2  # of a PlacementInfo with `min_in_sync`
ZONES_FORMAT = 3  # of a PlacementInfo with `preferred_zones`


class PlacementChanges(StoredPart):
    """The properties that an alter names; None: it stays as it is."""

    replicas: int | None = None
    min_in_sync: int | None = Field(default=None, exclude_if=is_none)
    drops_min_in_sync: bool = Field(default=False, exclude_if=not_)
    """Whether a majority counts again."""
    reason: str | None = Field(default=None, exclude_if=is_none)
    """Reason of a lower minimum, in the words of the operator."""
    partitions: int | None = None
    storage_profiles: tuple[StorageProfile, ...] | None = None
    node_filter: NodeFilter | None = None
    preferred_zones: tuple[str, ...] | None = Field(default=None, exclude_if=is_none)
    comment: str | None = None
    drops_comment: bool = False


@dataclass(frozen=True, slots=True)
class CreatePlacementCommand(CatalogCommand):
    info: PlacementInfo
    if_not_exists: bool = False

    def keys(self) -> tuple[Key[Any], ...]:
        return (PlacementKey(self.info.name),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        existing = view.get(PlacementKey(self.info.name))
        stands = alike(self.info, existing, if_not_exists=self.if_not_exists)
        return () if stands else (PlacementCreated(info=self.info),)


class OfPlacement(ObjectOfPlacing[PlacementInfo]):
    __slots__ = ()
    word = "placement"
    placement_id: int

    def key(self, name: str) -> PlacementKey:
        return PlacementKey(name)

    def full_name(self, name: str) -> str:
        return name

    def is_same(self, info: PlacementInfo) -> bool:
        return info.placement_id == self.placement_id


@dataclass(frozen=True, slots=True)
class PlacementInUse(OfPlacement):
    """The placement of a table."""

    name: str
    placement_id: int


@dataclass(frozen=True, slots=True)
class AlterPlacementCommand(OfPlacement, ChangeCommand[PlacementInfo]):
    """Tables keep the engine that they were made with, and their regions stay where they are; other
    copies may lead them."""

    name: str
    placement_id: int
    changes: PlacementChanges
    profiles_in_use: Mapping[str, str] = field(default_factory=dict)
    """Profile -> the full name of a table that has it, as of *known_at*."""
    known_at: int = 0
    """The revision of the catalog of which the tables are known."""

    def unchanged(self) -> Mapping[Range, int]:
        if self.changes.storage_profiles is None:
            return {}
        return {PlacedTableKey.under(self.placement_id): self.known_at}

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = self.standing(view)
        new = altered(info, self.changes, self.profiles_in_use)
        if new == info:
            return ()
        return (PlacementAltered(info=new.model_copy(update={"version": info.version + 1})),)


@dataclass(frozen=True, slots=True)
class RenamePlacementCommand(OfPlacement, RenameCommand[PlacementInfo]):
    name: str
    placement_id: int
    new_name: str

    def renamed(self, info: PlacementInfo) -> Entry:
        return PlacementRenamed(name=self.name, info=info)


@dataclass(frozen=True, slots=True)
class DropPlacementCommand(OfPlacement, DropCommand[PlacementInfo]):
    name: str
    placement_id: int

    def users(self) -> Range:
        return PlacedTableKey.under(self.placement_id)

    def dropped(self) -> Entry:
        return PlacementDropped(name=self.name)


def altered(
    info: PlacementInfo, changes: PlacementChanges, profiles_in_use: Mapping[str, str]
) -> PlacementInfo:
    """Raises Refused for what no placement allows, Conflict("object-in-use") for a profile that is
    taken away from a table."""
    if changes.partitions not in (None, info.partitions):
        _refuse("/partitions", f"it is {info.partitions}, and cannot be altered")
    update: dict[str, object] = {}
    update |= _copy_numbers(info, changes)
    if changes.storage_profiles is not None:
        _profiles_must_stay(info, changes.storage_profiles, profiles_in_use)
        update["storage_profiles"] = changes.storage_profiles
    if changes.node_filter is not None:
        update["node_filter"] = changes.node_filter
    if changes.comment is not None or changes.drops_comment:
        update["comment"] = changes.comment
    if changes.preferred_zones is not None:
        update["preferred_zones"] = changes.preferred_zones
    new = info.model_copy(update=update)
    if faults := tuple(unfit_zones(new.preferred_zones, new.node_filter.zones)):
        raise Refused("invalid-request", errors=faults)
    return in_format(new)


def in_format(info: PlacementInfo) -> PlacementInfo:
    """The placement in a format that has its fields, and never an older one than it was in."""
    minimum_format = 1 if info.min_in_sync is None else MINIMUM_FORMAT
    needed = ZONES_FORMAT if info.preferred_zones else minimum_format
    return info if needed <= info.format else info.model_copy(update={"format": needed})


def placement_numbers(replicas: int, minimum: int | None) -> dict[str, Any]:
    """The fields of a PlacementInfo with these numbers. Raises Refused for a minimum above
    *replicas*."""
    if minimum is not None and minimum > replicas:
        _refuse("/min_in_sync", f"at most as many must be in sync as its {replicas} copies")
    return {"replicas": replicas, "min_in_sync": said_minimum(replicas, minimum)}


def _copy_numbers(info: PlacementInfo, changes: PlacementChanges) -> dict[str, Any]:
    """A minimum that is not named stays; it sinks with fewer copies than that."""
    replicas = changes.replicas or info.replicas
    minimum = changes.min_in_sync
    if minimum is None and info.min_in_sync is not None and not changes.drops_min_in_sync:
        minimum = min(info.min_in_sync, replicas)
    fields = placement_numbers(replicas, minimum)
    before, after = numbers_of(info), CopyNumbers(replicas, fields["min_in_sync"])
    if needs_reason(before, after) and changes.reason is None:
        _refuse("/reason", REASON_NEEDED)
    return fields


def _profiles_must_stay(
    info: PlacementInfo, profiles: tuple[StorageProfile, ...], in_use: Mapping[str, str]
) -> None:
    new = {profile.name: profile for profile in profiles}
    for profile in info.storage_profiles:
        if profile.name in new and new[profile.name] != profile:
            position = profiles.index(new[profile.name])
            why = "a profile keeps its engine and options; add one under another name"
            _refuse(f"/storage_profiles/{position}", why)
        if profile.name in new:
            continue
        name = f"storage profile {profile.name} of placement {info.name}"
        if (info.name, profile.name) == (DEFAULT_PLACEMENT, DEFAULT_PROFILE):
            raise Conflict("object-in-use", name=name, what=IS_DEFAULT)
        if profile.name in in_use:
            table = in_use[profile.name]
            raise Conflict("object-in-use", name=name, what=f"is used by {table}", used_by=[table])


def _refuse(pointer: str, detail: str) -> None:
    raise Refused("invalid-request", errors=(FieldError(pointer=pointer, detail=detail),))
