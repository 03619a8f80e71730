"""Commands: changes of metadata that a user asks for, as values with two pure halves.

`plan` judges a command against metadata as of one moment, and returns the entries of the log that
it comes to, or raises the refusal. `Catalog.apply` makes the next catalog of an entry. The keys
follow from the entries (keys/commit/entry_writes.py). A step reads, talks to nodes and commits.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from keys.commit.change import change
from keys.commit.entry_writes import MetadataView
from keys.commit.txn import Snapshot, Txn
from keys.key import Key, Range
from keys.model.log import Entry


class CatalogCommand(ABC):
    """Subclasses are frozen dataclasses of what the user asked for, resolved to ids."""

    __slots__ = ()

    @abstractmethod
    def keys(self) -> tuple[Key[Any], ...]:
        """The keys that `plan` looks at; the transaction compares every one of them."""

    def empty(self) -> tuple[Range, ...]:
        """Ranges in which the transaction must not find a key."""
        return ()

    def unchanged(self) -> Mapping[Range, int]:
        """Ranges in which no key may have been put after a revision: that of what the command was
        made by (docs/decisions/0195)."""
        return {}

    @abstractmethod
    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        """Returns nothing if *view* is as the command wants it already. Raises Refused, NotFound or
        Conflict."""


def change_of(command: CatalogCommand, read: Snapshot) -> Txn:
    """Plans *command* on *read*, which has all its keys. Raises as `CatalogCommand.plan`."""
    txn = change(read, *command.plan(read))
    for keys in command.empty():
        txn = txn.while_empty(keys)
    for keys, revision in command.unchanged().items():
        txn = txn.while_unchanged(keys, revision)
    return txn
