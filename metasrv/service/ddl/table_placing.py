"""Where a table is kept: its placement, storage profile and tablespace, by the catalog. Pure."""

from dataclasses import dataclass
from typing import Any

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT,
    DEFAULT_PROFILE,
    PlacementInfo,
    StorageProfile,
)
from keys.model.placing.tablespaces import DEFAULT_TABLESPACE
from metasrv.service.nearby import hint
from metasrv.service.requests.placing_names import (
    FullTablespaceName,
    placement_named,
    tablespace_named,
)
from metasrv_base.errors import Refused
from metasrv_base.wire.api.tables import HashPartition, RangePartition, TableSpec

FORMAT = 2
"""The format of a TableInfo with one of these fields."""


@dataclass(frozen=True, slots=True)
class TablePlacing:
    """The objects that the fields of a spec name."""

    placement: PlacementInfo
    profile: StorageProfile
    tablespace: str | None
    """None: `default`."""
    tablespace_id: int | None

    @property
    def is_default(self) -> bool:
        """Whether the table uses no more of the default placement than every table does."""
        return (self.placement.name, self.profile.name) == (DEFAULT_PLACEMENT, DEFAULT_PROFILE)

    @property
    def placement_name(self) -> str | None:
        """As the procedure keeps it."""
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
