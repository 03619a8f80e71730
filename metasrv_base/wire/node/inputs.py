"""Inputs of a job from a region: lists of files, sent from node to metasrv to Spark.

`GET /node/v1/regions/{region_id}/borrowed` answers what it must bring over, from the region's own
first manifest; `GET /node/v1/regions/{region_id}/snapshot` what holds its rows as of a mark.
"""

from pydantic import Field

from metasrv_base.wire.model import Int32, Int64, RegionId, WireModel
from metasrv_base.wire.node.orders import DataFile, RegionColumn


class BorrowedFile(WireModel):
    root: str
    file: DataFile


class SealedSegment(WireModel):
    """A log segment of an older opening, up to its seal; no one reads beyond it."""

    root: str
    name: str
    bytes: Int64
    checksum: str
    """crc32 of the sealed bytes, 8 hexadecimal digits."""


class Borrowed(WireModel):
    region_id: RegionId
    epoch: Int64
    root: str
    """The region's own root, under which the job's attempt folder lies."""
    columns: list[RegionColumn]
    indexes: list[Int32] = Field(default_factory=list)
    """Indexes whose entries the files and segments may hold; entries of others are left behind."""
    marks: list[Int64]
    """Open marks: row versions at which the newest version of each key must survive."""
    files: list[BorrowedFile]
    segments: list[SealedSegment]


class Snapshot(WireModel):
    """Every row of a region as of an open mark is in these files, beside newer and older versions
    of it: of each key the newest version at or below the mark counts, a tombstone for no row."""

    region_id: RegionId
    epoch: Int64
    root: str
    """The region's own root, under which the job's attempt folder lies."""
    columns: list[RegionColumn]
    mark: str
    version: Int64
    """The mark's row version."""
    files: list[BorrowedFile]
    """Own ones too, with their root. None is deleted while the mark is open and the region is
    served where it was when it was asked."""

    @property
    def rows(self) -> int:
        """Rows in all files: at least as many as there are rows as of the mark."""
        return sum(entry.file.rows for entry in self.files)

    @property
    def bytes(self) -> int:
        return sum(entry.file.bytes for entry in self.files)
