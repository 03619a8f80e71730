"""A poison: a resource that a change left half undone, so that a person must look at it first."""

from dataclasses import dataclass
from typing import ClassVar

from keys.key import Key
from keys.model.records import Resource, StoredError
from keys.value import StoredModel


class Poison(StoredModel):
    """A mark that an undo was given up: written in the transaction that gives it up, deleted in
    the one that clears it. Until then the procedure's record stays, and with it its locks of the
    schema side."""

    procedure: str
    kind: str
    resource: Resource
    step: str
    """Step whose undo failed."""
    error: StoredError
    """The error of the last attempt to undo."""
    at_ms: int


@dataclass(frozen=True, slots=True)
class PoisonKey(Key[Poison]):
    """`resource` is its type and id, as `table:1024`."""

    template: ClassVar[str] = "__poison/{resource}"
    value_type: ClassVar[type[StoredModel]] = Poison

    resource: str

    @classmethod
    def of(cls, resource: Resource) -> "PoisonKey":
        return cls(f"{resource.type}:{resource.id}")
