"""The manifest: one immutable file that says what a region consists of.

Text: a line of JSON, then the crc32 of that line as 8 hexadecimal digits. Manifests are made under
a name of their own and never replaced; the highest (epoch, opening, number) is current, so a late
one of an older opening never counts. An opening's first manifest *seals* every older log segment
it builds on: no replay reads a sealed segment beyond the length written here, nor one of an older
opening that is not listed.
"""

import posixpath
import zlib
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dataplane.region.disk.disk import Disk, write_file
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.families import ROWS
from dataplane.region.format.names import UNFINISHED, Numbered, manifest_name, manifests
from dataplane.region.format.schema import RegionSchema
from metasrv_base.errors import Corrupt, NotFound, Unavailable

MANIFEST_BYTES_MAX = 64 << 20
"""The longest manifest that is published, in bytes. Reading has no limit: no published manifest is
read in part."""
_CRC_LINE_BYTES = 10  # newline, 8 digits, newline


def _family(stored: object) -> object:
    """Manifests of before there were indexes name the family of rows by a word."""
    return ROWS if stored == "rows" else stored


class ManifestModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Decoded(ManifestModel):
    """The rows of a file as they are in memory, so that the memory of a scan is known before the
    footer is read."""

    row_groups: int
    bytes: int
    largest: int
    """Bytes of the largest row group."""


class FileEntry(ManifestModel):
    """One immutable Parquet file. Keys and checksums are hexadecimal."""

    root: str | None
    """The root of the file; None for the region's own. Else it is a borrowed root, absolute, and
    the file is read-only."""
    name: str
    """Relative to the root."""
    family: Annotated[int, BeforeValidator(_family)] = ROWS
    bytes: int
    crc32: str
    footer_bytes: int
    """The last bytes of the file, which say what the rest must be (block_sums.py)."""
    footer_crc32: str
    rows: int
    row_checksum: str
    min_key: str
    """A key at or below every key of the file: `key_range.lower_bound` of the first."""
    max_key: str
    """A key at or above every key of the file: `key_range.upper_bound` of the last."""
    min_version: int
    max_version: int
    run: str | None = None
    """The name of the first file of the merge that wrote this one beside others; no two of them
    have a key in common. None: it wrote one file."""
    decoded: Decoded | None = None
    """The size of the decoded rows; None if a job has written the file, or an older version: the
    footer says it."""


class SealedEntry(ManifestModel):
    """A log segment of an older opening, up to its seal."""

    root: str | None
    name: str
    bytes: int
    crc32: str
    """The checksum of the sealed bytes."""
    rows: int
    covered: bool = False
    """Whether its rows stand in own files too, so that opening need not replay it."""


class ListedStatement(ManifestModel):
    """A statement that was applied, as manifests listed them before there were files of them."""

    statement_id: str
    version: int
    rows: int


class StatementFile(ManifestModel):
    """Statements that were applied (statement_files.py), in the own root."""

    name: str
    bytes: int
    """The file may have grown since."""
    crc32: str
    """The checksum of those bytes."""


class Mark(ManifestModel):
    """A moment that somebody still reads as of: an unmerged freeze, a reorg, a copy."""

    name: str
    version: int


class StoredPosition(ManifestModel):
    """A `dataplane.log.records.LogPosition`, stored."""

    epoch: int
    sequence: int


class Manifest(ManifestModel):
    format: Literal[1] = 1
    epoch: int
    opening: int
    number: int
    spec: RegionSpec
    schema_floor: int
    version: int
    """No row version at or below it will be given again."""
    sequence: int
    """The last record of the log that the files hold, or that is sealed."""
    log_from: int
    """The first segment of *this* opening whose rows are not in `files`."""
    files: tuple[FileEntry, ...] = ()
    sealed: tuple[SealedEntry, ...] = ()
    adopted: tuple[str, ...] = ()
    """Procedures whose files were exchanged for borrowed inputs, and `{procedure}/{index}` of those
    whose entries were ingested. In this root: a leader elsewhere borrows anew, and the same
    procedure may have to bring that over too."""
    statements: tuple[ListedStatement, ...] = ()
    """Read from older manifests; never written."""
    statement_files: tuple[StatementFile, ...] = ()
    """Statements of the log segments that were cut, as far as they are remembered."""
    forgotten_ms: int = 0
    """The latest time of a statement that was forgotten: copies that are not later are refused."""
    marks: tuple[Mark, ...] = ()
    """Open ones. Of each key the newest version at or below each is kept, and every tombstone above
    it. They follow the region through all openings."""
    schema_version: int = 0
    """The newest that the region was told of."""
    indexes: tuple[int, ...] = ()
    """Families that may hold entries."""
    dead_indexes: tuple[int, ...] = ()
    """Families whose ids are never taken again: their tombstones, through all openings."""
    floor_version: int = 0
    """The highest row version given before `schema_floor` took hold."""
    in_files: StoredPosition | None = None
    """The last position up to which files hold all records. None: of older manifests, and where
    records came without a position."""
    change_sequence: int = Field(default=0, exclude_if=lambda sequence: sequence == 0)
    """The sequence of the last CHANGE record that has taken effect here: those up to it do not do
    so again. 0: none has."""

    @property
    def id(self) -> Numbered:
        return Numbered(self.epoch, self.opening, self.number)

    @property
    def table_schema(self) -> RegionSchema:
        return RegionSchema(
            version=self.schema_version,
            floor=self.schema_floor,
            columns=self.spec.columns,
            indexes=frozenset(self.indexes),
            dead=frozenset(self.dead_indexes),
        )

    @property
    def borrowed_roots(self) -> tuple[str, ...]:
        roots = [*(file.root for file in self.files), *(log.root for log in self.sealed)]
        return tuple(sorted({root for root in roots if root is not None}))


def encode_manifest(manifest: Manifest) -> bytes:
    line = manifest.model_dump_json().encode()
    return line + b"\n%08x\n" % zlib.crc32(line)


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Raises Corrupt: manifests are named only when whole, so damage is never a torn write."""
    line, tail = data[:-_CRC_LINE_BYTES], data[-_CRC_LINE_BYTES:]
    if tail != b"\n%08x\n" % zlib.crc32(line):
        raise Corrupt(path=path, reason="the manifest's checksum does not fit")
    try:
        return Manifest.model_validate_json(line)
    except ValidationError as error:
        raise Corrupt(path=path, reason="the manifest cannot be decoded") from error


def publish_manifest(disk: Disk, root: str, manifest: Manifest) -> None:
    """Durable on return. The caller must look at the fence before it acts on what it says."""
    data = encode_manifest(manifest)
    assert len(data) <= MANIFEST_BYTES_MAX, "limits of keys and merges keep manifests small"
    target = posixpath.join(root, manifest_name(manifest.id))
    write_file(disk, target + UNFINISHED, data)
    disk.rename(target + UNFINISHED, target)
    disk.sync_folder(root)


def _read_whole(disk: Disk, path: str) -> bytes:
    parts = [disk.read(path, 0, MANIFEST_BYTES_MAX)]
    while len(parts[-1]) == MANIFEST_BYTES_MAX:
        parts.append(disk.read(path, len(parts) * MANIFEST_BYTES_MAX, MANIFEST_BYTES_MAX))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_current_manifest(disk: Disk, root: str, region_id: int) -> Manifest | None:
    """The highest manifest of a root; None: it never had one.

    Raises NotFound without the folder, Corrupt for a manifest that is damaged or another region's,
    Unavailable `region-lost` where there are rows but no manifest.
    """
    while True:
        names = disk.list(root)
        manifest_ids = manifests(names)
        if not manifest_ids:
            if any(name.startswith("wal-") for name in names):
                raise Unavailable("region-lost", root=root)
            return None
        path = posixpath.join(root, manifest_name(manifest_ids[-1]))
        try:
            data = _read_whole(disk, path)
        except NotFound:
            continue  # an older leader was still deleting superseded ones: there is a higher one
        manifest = decode_manifest(data, path)
        if manifest.spec.region_id != region_id or manifest.id != manifest_ids[-1]:
            raise Corrupt(path=path, region_id=region_id, found=manifest.spec.region_id)
        return manifest
