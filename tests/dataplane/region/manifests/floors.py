"""Regions that are told newer schemas, and what they answer below their floor."""

from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.engine.region import Region
from dataplane.region.format.schema import RegionSchema
from metasrv_base.errors import MetaError
from tests.dataplane.region.rig import (
    SPEC,
    batch,
    header,
    place,
    write,
)

NEWS = RegionSchema(version=2, floor=2, columns=SPEC.columns)


MARK = "reorg-1"


def new_region(disk: MemoryDisk | None = None) -> Region:
    """A row in a file, and one in the log."""
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x")})
    region.maintenance.flush()
    write(region, "s-2", {b"b": (2, "y")})
    return region


def code_at(region: Region, schema_version: int, statement: str) -> str:
    """Returns the code with which a batch of that schema version is answered."""
    head = header(statement, region.opening.epoch, schema_version)
    (answer,) = region.writer.apply([(head, batch({statement.encode(): (0, None)}))])
    return answer.code if isinstance(answer, MetaError) else "done"
