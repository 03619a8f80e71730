"""Pins of the catalog's history: versions that somebody still reads, for a limited time."""

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
