"""Commands that take effect together: each is planned on what those before it leave. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from keys.commit.entry_writes import MetadataView, ViewAfter
from keys.commit.txn import Snapshot
from keys.key import Key, Range
from keys.model.log import Entry
from keys.value import StoredModel
from metasrv_base.errors import MetaError
from procedures.commands.command import CatalogCommand

V = TypeVar("V", bound=StoredModel)
K = TypeVar("K", bound=Key[Any])


class ListingView(MetadataView, Protocol):
    """Metadata as of one moment, that also tells which keys there are."""

    def inside(self, family: type[K], *leading: str | int) -> tuple[K, ...]:
        """The keys of *family* whose first parts are *leading*, in order."""
        ...


class SweepCommand(ABC):
    """A command about all that stands under a name. Subclasses are frozen dataclasses."""

    __slots__ = ()

    @abstractmethod
    def keys(self) -> tuple[Key[Any], ...]:
        """As `CatalogCommand.keys`; what `inside` tells comes to it."""

    @abstractmethod
    def ranges(self) -> tuple[Range, ...]:
        """Ranges that `plan` looks into; the transaction compares that nothing came into them."""

    @abstractmethod
    def plan(self, view: ListingView) -> tuple[Entry, ...]:
        """As `CatalogCommand.plan`."""


BatchCommand = CatalogCommand | SweepCommand


@dataclass(slots=True)
class DraftView:
    """A view as the entries so far have left it."""

    before: ListingView
    after: ViewAfter = field(init=False)

    def __post_init__(self) -> None:
        self.after = ViewAfter(self.before)

    def get(self, key: Key[V], /) -> V | None:
        return self.after.get(key)

    def inside(self, family: type[K], *leading: str | int) -> tuple[K, ...]:
        start, end = family.under(*leading)
        keys = {bytes(key): key for key in self.before.inside(family, *leading)}
        for key, write in self.after.writes.items():
            if isinstance(key, family) and start <= bytes(key) < end:
                if write.value is None:
                    keys.pop(bytes(key), None)
                else:
                    keys[bytes(key)] = key
        return tuple(keys[raw] for raw in sorted(keys))

    def apply(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.after.apply(entry)


@dataclass(frozen=True, slots=True)
class ListedSnapshot:
    """A snapshot of keys, and all keys of some ranges at the same revision."""

    read: Snapshot
    ranges: tuple[Range, ...]
    listed: Mapping[type[Key[Any]], Sequence[Key[Any]]]
    """The keys of those ranges by family, in order."""

    def get(self, key: Key[V], /) -> V | None:
        return self.read.get(key)

    def inside(self, family: type[K], *leading: str | int) -> tuple[K, ...]:
        start, end = family.under(*leading)
        assert any(low <= start and end <= high for low, high in self.ranges), "not listed"
        keys = self.listed.get(family, ())
        return tuple(key for key in keys if isinstance(key, family) and start <= bytes(key) < end)


def planned(commands: Iterable[BatchCommand], view: ListingView) -> Iterator[tuple[Entry, ...]]:
    """Yields the entries of each command, none for one that has nothing to do. Raises as
    `CatalogCommand.plan`, with `command`, its place in the list."""
    draft = DraftView(view)
    for number, command in enumerate(commands):
        try:
            entries = command.plan(draft)
        except MetaError as error:
            raise placed(error, number) from error
        draft.apply(entries)
        yield entries


def placed(error: MetaError, number: int) -> MetaError:
    """The same error, which names the place of the command in its list."""
    return type(error)(error.code, **{**error.facts, "command": number})
