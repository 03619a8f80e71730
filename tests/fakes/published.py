"""Facts that must hold at the moment when a schema version is published (docs/protocols.md P6)."""

from collections.abc import Iterator

from keys.model.tables import RegionState, TableInfo, TableRoute
from tests.fakes.datanodes.plane import Plane
from tests.fakes.holders import LEASE_MS, FakeHolders


def faults(info: TableInfo, route: TableRoute, plane: Plane, holders: FakeHolders) -> Iterator[str]:
    """The version before it is in use; the one before that must be impossible everywhere."""
    version, floor = info.schema_version, info.schema_version - 1
    for region in route.region_routes:
        folder = plane.storage.folders.get(region.root)
        if region.state is not RegionState.OPEN or folder is None:
            yield f"version {version} is published while region {region.region_id} is not open"
        elif folder.schema_floor < floor or folder.schema_version < version:
            found = f"floor {folder.schema_floor}, knows {folder.schema_version}"
            yield f"version {version} is published, region {region.region_id}: {found}"
    now = holders.clock.mono_ms()
    for name, holder in holders.holders.items():
        since = holder.silent_since_ms
        has_lease = since is None or since + LEASE_MS > now
        if has_lease and holder.uses.get(info.table_id, version) < floor:
            yield f"version {version} is published while {name} uses one below {floor}"
