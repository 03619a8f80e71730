"""Inspection of the regions on one disk: facts, beside what the files claim about themselves.

`python -m dataplane.region.check.inspect NODE_ROOT` reads a request from its standard input and
writes an inspection to its standard output; `metasrv check` judges it. No judgement is made here.
"""

from metasrv_base.schema.partition import PartitionRule
from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel


class KeyShape(WireModel):
    """The form of a region's keys, sufficient to apply the partition rule to each of them."""

    types: Listed[str]
    """Types of the primary key's columns, in order."""
    partition_at: Listed[Int64]
    """Places of the partition columns among them."""
    rule: PartitionRule
    number: Int64
    """Number of the region, to which the rule must send every key of it."""


class WantedRegion(WireModel):
    """A folder to look into."""

    region_id: str
    root: str
    """Absolute."""
    key: KeyShape | None = None
    """The form of keys; None if keys are not sent through a rule."""


class InspectRequest(WireModel):
    deep: bool = False
    """Also read every value: checksums of rows, and the live rows of each region."""
    regions: Listed[WantedRegion] = ()


class FoundFence(WireModel):
    name: str
    epoch: Int64
    opening: Int64


class FoundManifest(WireModel):
    """The highest manifest of a root."""

    name: str
    region_id: str
    epoch: Int64
    opening: Int64
    borrowed_roots: Listed[str]


class FileContent(WireModel):
    """A Parquet file: as a manifest lists it, or as it was found. None: not read."""

    bytes: Int64
    crc32: str
    rows: Int64 | None = None
    row_checksum: str | None = None
    """Only when read deeply."""
    min_key: str | None = None
    max_key: str | None = None
    min_version: Int64 | None = None
    max_version: Int64 | None = None


class InspectedFile(WireModel):
    path: str
    family: Int64 = 0
    """0: rows; else the index whose entries it holds."""
    listed: FileContent
    found: FileContent | None
    """The content of the file; None if it is not there, or `error` says why it could not be
    read."""
    unsorted_at: Int64 | None = None
    """The first row that is not above the one before it, by key and then newest first."""
    error: str | None = None


class SegmentContent(WireModel):
    bytes: Int64
    crc32: str
    rows: Int64


class InspectedSegment(WireModel):
    """A log segment that the region still needs."""

    path: str
    sealed: SegmentContent | None
    """The sealed content; None for a segment of the opening that the manifest belongs to, which may
    still grow."""
    found: SegmentContent | None
    error: str | None = None


class LiveRows(WireModel):
    """A summary of the rows that a reader of the region would see."""

    rows: Int64
    checksum: str
    """Order-independent, of keys and values: 16 hexadecimal digits."""
    strays: Int64 = 0
    """Keys that the partition rule sends to another region, or that are no keys of the table."""
    first_stray: str | None = None
    """Hexadecimal."""


class LiveEntries(WireModel):
    """A summary of one index as a reader would see it; the digest covers entries and keys of
    rows."""

    index: Int64
    rows: Int64
    checksum: str


class InspectedRoot(WireModel):
    region_id: str
    root: str
    exists: bool
    fences: Listed[FoundFence] = ()
    """Lowest first."""
    manifest: FoundManifest | None = None
    error: str | None = None
    """Why there is no manifest to go by, or why its log does not hang together."""
    files: Listed[InspectedFile] = ()
    segments: Listed[InspectedSegment] = ()
    statements: Listed[InspectedFile] = ()
    """Files of the statements that the region remembers, as far as the manifest names them."""
    version: Int64 = 0
    """The highest row version that its files and its log hold."""
    live: LiveRows | None = None
    """The live rows; None if they were not asked for, or cannot be had."""
    entries: Listed[LiveEntries] = ()
    """Summaries of the indexes; with `live`."""


class Inspection(WireModel):
    format: PositiveInt64 = 1
    node_root: str
    exists: bool
    folders: Listed[str] = ()
    """Absolute: every folder of a region under the node's root."""
    regions: Listed[InspectedRoot] = ()
    """Results for the regions of the request, in its order."""
