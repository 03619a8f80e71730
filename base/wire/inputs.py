"""What a region has borrowed and a job must bring over: the list between node, metasrv and Spark.

`GET /node/v1/regions/{region_id}/borrowed` answers it from the region's own first manifest.
"""

from pydantic import Field

from base.wire.model import WireModel
from base.wire.orders import DataFile, RegionColumn


class BorrowedFile(WireModel):
    root: str
    file: DataFile


class SealedSegment(WireModel):
    """A log segment of an older opening, up to its seal; no one reads beyond it."""

    root: str
    name: str
    bytes: int
    checksum: str
    """crc32 of the sealed bytes, 8 hexadecimal digits."""


class Borrowed(WireModel):
    region_id: str
    epoch: int
    root: str
    """The region's own root, under which the job's attempt folder lies."""
    columns: list[RegionColumn]
    indexes: list[int] = Field(default_factory=list)
    """Whose entries the files and segments may hold; those of others are left behind."""
    marks: list[int]
    """Open marks: row versions at which the newest version of each key must survive."""
    files: list[BorrowedFile]
    segments: list[SealedSegment]
