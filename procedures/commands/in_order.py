"""Commands that take effect together: each is planned on what those before it leave. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from keys.commit.entry_writes import KeyWrite, MetadataView, ViewAfter
from keys.commit.txn import Snapshot
from keys.key import Key, Range
from keys.model.log import Entry
from keys.value import StoredModel
from metasrv_base.concurrency.turns import Turns, slices, sorting
from metasrv_base.errors import MetaError, Refused
from procedures.commands.command import CatalogCommand

V = TypeVar("V", bound=StoredModel)
K = TypeVar("K", bound=Key[Any])
PLANNED_AT_ONCE = 8
"""Commands, or tables of a cascade, of one turn of the event loop: some ms, and 25 where each is of
a table in another part of the snapshot. The end of one such slice and another may share a turn."""
OBJECTS_MAX = 10_000
"""Catalogs, schemas and tables that one batch changes, with all that its cascades drop."""


class ListingView(MetadataView, Protocol):
    """Metadata as of one moment, that also tells which keys there are."""

    def inside(self, family: type[K], *leading: str | int) -> Turns[tuple[K, ...]]:
        """The keys of *family* whose first parts are *leading*, in order; some in a turn."""
        ...


class SweepCommand(ABC):
    """A command about all that stands under a name. Subclasses are frozen dataclasses."""

    __slots__ = ()

    @abstractmethod
    def keys(self) -> tuple[Key[Any], ...]:
        """Returns the keys that `plan` reads, as `CatalogCommand.keys` does, but for those that
        `inside` lists."""

    @abstractmethod
    def ranges(self) -> tuple[Range, ...]:
        """Ranges that `planning` looks into; the transaction compares that nothing came in."""

    @abstractmethod
    def planning(self, view: ListingView) -> Turns[tuple[Entry, ...]]:
        """Plans the command as `CatalogCommand.plan` does, some tables in a turn. Raises also
        Refused("ddl-too-large")."""


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

    def inside(self, family: type[K], *leading: str | int) -> Turns[tuple[K, ...]]:
        start, end = family.under(*leading)
        before = yield from self.before.inside(family, *leading)
        written = dict[bytes, KeyWrite]()
        for some in slices(self.after.writes.items()):
            for key, write in some:
                if isinstance(key, family) and start <= bytes(key) < end:
                    written[bytes(key)] = write
            yield
        if not written:  # a cascade alone: thousands of keys are not sorted again
            return before
        keys = list[K]()
        for page in slices(before):
            keys += (key for key in page if bytes(key) not in written)
            yield
        keys += (cast("K", write.key) for write in written.values() if write.value is not None)
        return (yield from sorting(keys, bytes))

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

    def inside(self, family: type[K], *leading: str | int) -> Turns[tuple[K, ...]]:
        start, end = family.under(*leading)
        assert any(low <= start and end <= high for low, high in self.ranges), "not listed"
        keys = self.listed.get(family, ())
        yield  # once: no more keys than one transaction compares
        return tuple(key for key in keys if isinstance(key, family) and start <= bytes(key) < end)


def planned(
    commands: Iterable[BatchCommand], view: ListingView
) -> Turns[tuple[tuple[Entry, ...], ...]]:
    """The entries of each command, none for one that has nothing to do. A turn has some commands,
    or some tables of one. Raises as `CatalogCommand.plan`, with `command`, its place in the
    list."""
    draft, plans = DraftView(view), list[tuple[Entry, ...]]()
    for number, command in enumerate(commands, start=1):
        try:
            if isinstance(command, SweepCommand):
                entries = yield from command.planning(draft)
            else:
                entries = command.plan(draft)
        except MetaError as error:
            raise placed(error, number - 1) from error
        for some in slices(entries, PLANNED_AT_ONCE):
            draft.apply(some)
            if len(some) == PLANNED_AT_ONCE:
                yield
        plans.append(entries)
        if number % PLANNED_AT_ONCE == 0:
            yield
    return tuple(plans)


def refuse_too_many(objects: int) -> None:
    """Raises Refused("ddl-too-large") above OBJECTS_MAX."""
    if objects > OBJECTS_MAX:
        needs = f"a version that changes {objects} objects"
        raise Refused("ddl-too-large", needs=needs, limit=OBJECTS_MAX)


def placed(error: MetaError, number: int) -> MetaError:
    """The same error, which names the place of the command in its list."""
    return type(error)(error.code, **{**error.facts, "command": number})
