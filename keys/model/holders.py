"""Stored registrations of holders of schema leases, which plan statements from the catalog
(docs/protocols.md P6)."""

from dataclasses import dataclass
from typing import ClassVar

from keys.key import Key
from keys.value import StoredModel


class HolderRecord(StoredModel):
    """A registered holder. Durable, without an etcd lease: it ends by its own sign-off, or by the
    leader's decision once its schema lease has ended."""

    holder_id: str
    incarnation: str
    """New at every registration; only the newest registered one is heard."""
    address: str
    """Base URL."""
    version: str
    """Version of the holder's program."""
    registered_at_ms: int


@dataclass(frozen=True, slots=True)
class HolderKey(Key[HolderRecord]):
    template: ClassVar[str] = "__schema_holder/{holder}"
    value_type: ClassVar[type[StoredModel]] = HolderRecord

    holder: str
