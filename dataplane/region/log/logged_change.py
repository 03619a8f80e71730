"""The payload of a CHANGE record: the schema, the floor and the marks of a region.

JSON. A record has all of them, as they are after the change, and not what was changed: so the last
record counts, whatever a copy knew before it. A schema only grows (schema.py): what a copy knows
beyond the record it keeps.
"""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.schema import RegionSchema
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

    @classmethod
    def of(cls, manifest: Manifest, version: int) -> "LoggedChange":
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


def with_change(manifest: Manifest, record: PositionedChange) -> Manifest:
    """The manifest once the record has taken effect; the same if it has had before. The number is
    the caller's, and that the record is common to all copies, with all records before it."""
    change, sequence = record.change, record.sequence
    if sequence <= manifest.change_sequence:
        return manifest
    floor_version = change.floor_version
    if change.schema_floor == manifest.schema_floor:
        floor_version = max(floor_version, manifest.floor_version)
    elif change.schema_floor < manifest.schema_floor:
        floor_version = manifest.floor_version
    after = with_schema(manifest, change.table_schema, change.floor_version)
    return after.model_copy(
        update={
            "floor_version": floor_version,
            "marks": change.marks,
            "version": max(manifest.version, change.version),
            "change_sequence": sequence,
        }
    )
