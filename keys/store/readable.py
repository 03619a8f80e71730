"""The values of a range that this program can read, one by one.

A value of a newer format, or one that was edited by hand, is reported to the caller and skipped. It
is never rewritten or deleted, and it does not keep the others of its range from being read.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from keys.key import Key
from keys.store.kv import KeyValue
from keys.value import StoredModel, decode
from metasrv_base.errors import Corrupt

K = TypeVar("K", bound=Key[Any])
V = TypeVar("V", bound=StoredModel)

Tell: TypeAlias = Callable[[KeyValue, Corrupt], None]
"""Hears of each value that was skipped, and why."""


class KeyRow(NamedTuple, Generic[K, V]):
    """One key as it was read. `size_bytes`: of key and value."""

    key: K
    value: V
    revision: int
    size_bytes: int


def readable(
    family: type[K], value_type: type[V], items: Iterable[KeyValue], tell: Tell
) -> Iterator[KeyRow[K, V]]:
    assert family.value_type is value_type, f"{family.__name__} holds {family.value_type.__name__}"
    for item in items:
        try:
            key = family.parse(item.key)
            value = decode(value_type, item.value, key=str(key))
        except Corrupt as error:
            tell(item, error)
        else:
            yield KeyRow(key, value, item.mod_revision, len(item.key) + len(item.value))


def skip_silently(item: KeyValue, error: Corrupt) -> None:
    """A `Tell` for readers that leave the report to the leader."""
