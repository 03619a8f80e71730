"""Placements: how often, on which nodes and by which engines regions of tables are kept."""

from dataclasses import dataclass
from operator import not_
from typing import ClassVar

from pydantic import Field

from keys.key import Key
from keys.value import StoredModel, StoredPart, is_none

DEFAULT_PLACEMENT = "default"
"""The placement of tables that name none. It always exists under this name."""
DEFAULT_PLACEMENT_ID = 1024
DEFAULT_PROFILE = "default"
DEFAULT_ENGINE = "lsm"
PLACEMENTS_MAX = 1_000
"""Placements of one cluster. Concurrent creates may pass it by as many as run at once."""


class LabelCondition(StoredPart):
    """A node must bear the label with one of the values."""

    label: str
    values: tuple[str, ...]


class NodeFilter(StoredPart):
    """The nodes that may lead regions; empty: any node."""

    zones: tuple[str, ...] = ()
    """The node stands in one of them; empty: in any."""
    labels: tuple[LabelCondition, ...] = ()
    """All of them hold."""


class StorageProfile(StoredPart):
    """A region engine with options. It never changes under its name; it is added and removed."""

    name: str
    engine: str
    options: dict[str, int] = Field(default_factory=dict)


class PlacementInfo(StoredModel):
    """Format 2 has `min_in_sync`, format 3 `preferred_zones`; a placement that never had them is
    written in format 1."""

    newest_format: ClassVar[int] = 3

    placement_id: int
    """Never reused; tables keep it, so a rename changes no table."""
    name: str
    version: int = 1
    """Rises by one at every change of this value."""
    replicas: int = 1
    """Copies of each region of a table that names no number of its own."""
    partitions: int = 1
    """Regions of a table that says nothing of its partitions. Never changes."""
    storage_profiles: tuple[StorageProfile, ...]
    """At least one. The first is that of tables that name none."""
    node_filter: NodeFilter = NodeFilter()
    comment: str | None = None
    created_at_ms: int
    min_in_sync: int | None = Field(default=None, exclude_if=is_none)
    """Copies in sync without which regions of its tables acknowledge nothing. None: a majority of
    `replicas`."""
    preferred_zones: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """Zones in which leaders are wanted, the best first; others come after them. A preference:
    where no node of theirs fits, another leads."""

    def profile(self, name: str) -> StorageProfile | None:
        return next((each for each in self.storage_profiles if each.name == name), None)


@dataclass(frozen=True, slots=True)
class PlacementKey(Key[PlacementInfo]):
    template: ClassVar[str] = "__placement/{name}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = PlacementInfo

    name: str


class PlacedTable(StoredModel):
    """A living table that uses the placement, beyond what every table does."""

    table_id: int
    storage_profile: str | None = Field(default=None, exclude_if=is_none)
    """The storage profile; None for the profile `default` of the placement `default`."""


@dataclass(frozen=True, slots=True)
class PlacedTableKey(Key[PlacedTable]):
    """Derived from the table. A placement without such a key can be dropped."""

    template: ClassVar[str] = "__placement_table/{placement_id}/{table_id}"
    is_logged: ClassVar[bool] = True
    value_type: ClassVar[type[StoredModel]] = PlacedTable

    placement_id: int
    table_id: int


def default_placement(at_ms: int) -> PlacementInfo:
    """The placement that every cluster has: one copy, one region, any node, the engine `lsm`."""
    return PlacementInfo(
        placement_id=DEFAULT_PLACEMENT_ID,
        name=DEFAULT_PLACEMENT,
        storage_profiles=(StorageProfile(name=DEFAULT_PROFILE, engine=DEFAULT_ENGINE),),
        created_at_ms=at_ms,
    )
