"""The payload of a CHANGE record: the schema, the floor and the marks of a region; with the files
that it takes, if it takes any.

JSON. A record has all of the former, as they are after the change, and not what was changed: so the
last record counts, whatever a copy knew before it. A schema only grows (schema.py): what a copy
knows beyond the record it keeps. Files are those of this record alone: each record counts.
"""

from collections.abc import Iterable
from functools import partial
from operator import is_
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_files import LoggedFiles
from dataplane.region.manifests.adoption import remembered
from dataplane.region.manifests.floor import with_schema
from dataplane.region.manifests.manifest import Manifest, Mark
from metasrv_base.errors import Corrupt


class LoggedChange(BaseModel):
    """Fields have the meaning and the units of those of `Manifest`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    version: int
    """The highest row version given before the change, or reserved by it."""
    schema_version: int
    schema_floor: int
    floor_version: int
    columns: tuple[ColumnDef, ...]
    indexes: tuple[int, ...] = ()
    dead_indexes: tuple[int, ...] = ()
    marks: tuple[Mark, ...] = ()
    files: LoggedFiles | None = Field(default=None, exclude_if=partial(is_, None))
    """Files that the region takes. A copy has the record only once it has them."""

    @classmethod
    def of(
        cls, manifest: Manifest, version: int, files: LoggedFiles | None = None
    ) -> "LoggedChange":
        """The change that leads to what *manifest* says. *version*: the highest given."""
        return cls(
            version=max(version, manifest.version),
            schema_version=manifest.schema_version,
            schema_floor=manifest.schema_floor,
            floor_version=manifest.floor_version,
            columns=manifest.spec.columns,
            indexes=manifest.indexes,
            dead_indexes=manifest.dead_indexes,
            marks=manifest.marks,
            files=files,
        )

    @property
    def table_schema(self) -> RegionSchema:
        return RegionSchema(
            self.schema_version,
            self.schema_floor,
            self.columns,
            frozenset(self.indexes),
            frozenset(self.dead_indexes),
        )

    def encode(self) -> bytes:
        return self.model_dump_json().encode()


class PositionedChange(NamedTuple):
    """A change, and its sequence in the log."""

    sequence: int
    change: LoggedChange


def decode_change(payload: bytes | memoryview, source: str) -> LoggedChange:
    """Raises Corrupt: the payload's checksum was right, but it is no change."""
    try:
        return LoggedChange.model_validate_json(bytes(payload))
    except ValidationError as error:
        raise Corrupt(source=source, reason="a logged change cannot be decoded") from error


def with_change(manifest: Manifest, record: PositionedChange, root: str) -> Manifest:
    """The manifest of the copy in *root* once the record has taken effect; the same if it has had
    before. The number is the caller's, and that the record is common to all copies, with all
    records before it."""
    change, sequence = record.change, record.sequence
    if sequence <= manifest.change_sequence:
        return manifest
    floor_version = change.floor_version
    if change.schema_floor == manifest.schema_floor:
        floor_version = max(floor_version, manifest.floor_version)
    elif change.schema_floor < manifest.schema_floor:
        floor_version = manifest.floor_version
    after = with_schema(manifest, change.table_schema, change.floor_version)
    if change.files is not None:
        entries = change.files.entries_in(root)
        after = remembered(
            after,
            change.files.name,
            tuple(
                entry
                for entry in entries
                if entry.family not in after.dead_indexes and entry not in manifest.files
            ),
        )
    return after.model_copy(
        update={
            "floor_version": floor_version,
            "marks": change.marks,
            "version": max(manifest.version, change.version),
            "change_sequence": sequence,
        }
    )


def files_of_changes(
    changes: Iterable[PositionedChange], manifest: Manifest
) -> dict[int, LoggedFiles]:
    """The files of the changes that have not taken effect in *manifest*, by sequence: they are
    needed, though no manifest names them."""
    return {
        sequence: change.files
        for sequence, change in changes
        if change.files is not None and sequence > manifest.change_sequence
    }
