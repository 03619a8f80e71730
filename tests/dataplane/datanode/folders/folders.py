"""Folders of regions on a disk in memory, made as a node makes them."""

import posixpath

from dataplane.datanode.regions.store import DiskStore
from dataplane.region.disk.disk import Disk
from metasrv_base.wire.node.orders import CreateRegion, RegionColumn
from tests.fakes.clock import FakeClock

REGION = 1024 << 32 | 1
COLUMNS = [RegionColumn(id=1, type="int64", nullable=False)]


class PowerLossError(Exception):
    """The process ends between two operations."""


def store_of(disk: Disk, node_root: str = "/n", *shared: str) -> DiskStore:
    return DiskStore(disk, FakeClock(), node_root, shared_roots=shared)


def created(store: DiskStore, root: str, region: int = REGION) -> None:
    order = CreateRegion(
        number=1,
        region_id=str(region),
        epoch=1,
        root=root,
        table_id=1024,
        schema_version=1,
        schema_floor=1,
        columns=COLUMNS,
        key_columns=[1],
    )
    store.create(order).close()


def put(disk: Disk, path: str, data: bytes = b"precious") -> None:
    disk.make_folder(posixpath.dirname(path))
    file = disk.create(path)
    file.append(data)
    file.sync()
    file.close()
    disk.sync_folder(posixpath.dirname(path))
