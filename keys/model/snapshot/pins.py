"""Pins of history that somebody still reads, for a limited time: of a version of the catalog, or of
a revision of the store."""

from dataclasses import dataclass
from typing import ClassVar

from keys.key import Key
from keys.value import StoredModel


class CatalogPin(StoredModel):
    """A version below which the log is not cut until the pin is deleted or has expired."""

    name: str
    version: int
    reason: str
    by: str
    """The user who asked for it."""
    since_ms: int
    """Wall clock at which it was first asked for; a renewal does not move it."""
    expires_at_ms: int
    """Wall clock."""


@dataclass(frozen=True, slots=True)
class CatalogPinKey(Key[CatalogPin]):
    template: ClassVar[str] = "__catalog/pin/{name}"
    value_type: ClassVar[type[StoredModel]] = CatalogPin

    name: str


class RevisionPin(StoredModel):
    """A reader of the store as it was just before this key was created: etcd is not compacted above
    the revision before `create_revision`. So a renewal, which puts the key again, pins the same."""

    what: str
    """The work of the reader, as `a backup`."""
    server: str
    """The server that reads; it need not lead."""
    since_ms: int
    """Wall clock."""
    expires_at_ms: int
    """Wall clock; a renewal moves it."""


@dataclass(frozen=True, slots=True)
class RevisionPinKey(Key[RevisionPin]):
    template: ClassVar[str] = "__catalog/revision_pin/{reader}"
    value_type: ClassVar[type[StoredModel]] = RevisionPin

    reader: str
