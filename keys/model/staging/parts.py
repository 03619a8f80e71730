"""Parts of what one value cannot hold: the entries of a large version, and commands of a batch.

Parts are written before anything names them, and are complete once something does. Those of entries
belong to the log from then on: they are deleted together with the update that names them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from keys.key import Key
from keys.model.log import Entry, StagedRef
from keys.packed import DEFLATED, deflated, inflated, packing_of
from keys.value import StoredModel, decode_json, json_of
from metasrv_base.errors import Corrupt


class BatchPart(StoredModel):
    """A part of the entries of one version, or of the commands of one batch.

    Stored as packing 2: its JSON deflated, with a checksum (keys/packed.py).
    """

    batch: str
    part: int
    entries: tuple[Entry, ...] = ()
    members: tuple[dict[str, Any], ...] = ()
    """Commands, as the record of a smaller batch holds them."""

    def pack(self) -> bytes:
        return deflated(super().pack())

    @classmethod
    def unpack(cls, raw: bytes) -> bytes:
        return inflated(raw) if packing_of(raw, DEFLATED) == DEFLATED else raw


_END = b"]}"


def sealed_part(batch: str, part: int, what: str, items: Iterable[bytes]) -> bytes:
    """Returns the stored form of a part whose items are JSON already. *what*: the field."""
    return deflated(_head(batch, part, what) + b",".join(items) + _END)


def _head(batch: str, part: int, what: str) -> bytes:
    return b'{"format":1,"batch":"%s","part":%d,"%s":[' % (batch.encode(), part, what.encode())


@dataclass(frozen=True, slots=True)
class BatchPartKey(Key[BatchPart]):
    """Padded, because parts are read in order."""

    template: ClassVar[str] = "__batch/{batch}/{part:06}"
    value_type: ClassVar[type[StoredModel]] = BatchPart

    batch: str
    part: int


def items_json(raw: bytes, key: BatchPartKey, what: str) -> bytes:
    """The items of a part that `sealed_part` has made, as JSON between commas. They are not
    decoded: the digest of all parts says that they are what was written. Raises Corrupt, and
    NewerFormat."""
    text, head = json_of(BatchPart, raw, key=str(key)), _head(key.batch, key.part, what)
    if not (text.startswith(head) and text.endswith(_END)):
        decode_json(BatchPart, text, key=str(key))
        raise Corrupt(key=str(key), value=text[:200])
    return text[len(head) : -len(_END)]


class LargeUpdate(StoredModel):
    """An update of the log whose entries are in parts, and how many of their keys are written.

    Its version has happened, whatever is left: keys are read as if all were written.
    """

    version: int
    staged: StagedRef
    keys: int
    """The keys that the entries write, in the order of their names."""
    copied: int
    """The first of them, that are written."""

    @property
    def is_copied(self) -> bool:
        return self.copied == self.keys


@dataclass(frozen=True, slots=True)
class LargeUpdateKey(Key[LargeUpdate]):
    """The key of a large version's update. It sorts before the snapshots, so followers do not watch
    it."""

    template: ClassVar[str] = "__catalog/large/{version:020}"
    value_type: ClassVar[type[StoredModel]] = LargeUpdate

    version: int
