"""Keys as stored, with values that are decoded where they are read.

A decoded table takes ten times the memory of its JSON, and a check sees each at least three times:
under its key, in the log and in a snapshot.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from keys.key import Key
from keys.model.families import parse_any
from keys.model.log import CatalogUpdate
from keys.store.kv import KeyValue
from keys.value import NewerFormat, StoredModel, decode
from metasrv.check.stored.stored_log import with_entries
from metasrv_base.errors import Corrupt

K = TypeVar("K")
V = TypeVar("V", bound=StoredModel)


@dataclass(frozen=True, slots=True)
class Item:
    """One key as stored. `key` None: no family has it."""

    raw: KeyValue
    key: Key[Any] | None
    is_readable: bool = False
    """Whether its value can be decoded."""
    error: str | None = None
    """The reason why the key does not decode, or the value does not parse, or lacks parts."""
    is_newer: bool = False
    """Written in a format newer than this program knows."""
    whole: StoredModel | None = None
    """The value with what is stored in parts, where some is."""

    @property
    def name(self) -> str:
        return self.raw.key.decode("utf-8", "backslashreplace")

    @property
    def value(self) -> StoredModel | None:
        """Decoded anew each time. None: it cannot be."""
        if not self.is_readable or self.key is None:
            return None
        return self.whole or decode(self.key.value_type, self.raw.value, key=str(self.key))


class Values(Mapping[K, V]):
    """The values of items that can be read, each decoded when it is asked for."""

    def __init__(self, items: Mapping[K, Item]) -> None:
        self._items = items

    def __getitem__(self, key: K) -> V:
        return cast("V", self._items[key].value)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def item_of(raw: KeyValue, parts: Mapping[str, Sequence[KeyValue]]) -> Item:
    """Decodes a stored key and value. *parts* are those of large versions, by the name that refers
    to them."""
    try:
        key = parse_any(raw.key)
    except Corrupt as error:
        return Item(raw, None, error=str(error))
    try:
        value = decode(key.value_type, raw.value, key=str(key))
    except NewerFormat as error:
        return Item(raw, key, error=str(error), is_newer=True)
    except Corrupt as error:
        return Item(raw, key, error=str(error))
    item = Item(raw, key, is_readable=True)
    if isinstance(value, CatalogUpdate) and value.staged is not None:
        return _whole(item, value, parts)
    return item


def _whole(item: Item, update: CatalogUpdate, parts: Mapping[str, Sequence[KeyValue]]) -> Item:
    """An update with its entries, which are in parts. One that is below the snapshots may have lost
    them."""
    try:
        return replace(item, whole=with_entries(update, parts))
    except Corrupt as error:
        return replace(item, error=str(error))
