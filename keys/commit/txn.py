"""A change of metadata is a value: what was read, what is written, what the log will say."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from keys.key import Key, Range
from keys.model.log import Entry
from keys.store.kv import TXN_OPS_MAX, Delete, Get, Put, ReadableStore, Request
from keys.value import StoredModel, decode, encode
from metasrv_base.errors import Conflict, NotFound
from metasrv_base.values.frozen import frozen

V = TypeVar("V", bound=StoredModel)
UNKNOWN_REVISION = -1  # of a key that exists: it was written after its version


@frozen
class Read:
    """The value of one key as read. `mod_revision` 0: the key did not exist."""

    value: StoredModel | None
    mod_revision: int


@frozen
class Snapshot:
    """Keys read together at one store revision. A key that was not read is not here."""

    revision: int
    reads: Mapping[bytes, Read]

    def get(self, key: Key[V]) -> V | None:
        return cast("V | None", self.reads[bytes(key)].value)

    def must(self, key: Key[V]) -> V:
        value = self.get(key)
        if value is None:
            raise NotFound(key=str(key))
        return value

    def mod_revision(self, key: Key[Any]) -> int:
        return self.reads[bytes(key)].mod_revision

    def only(self, *keys: Key[Any]) -> "Snapshot":
        """The part of it that a change depends on."""
        return Snapshot(self.revision, {bytes(key): self.reads[bytes(key)] for key in keys})


async def snapshot(kv: ReadableStore, *keys: Key[Any], deadline_ms: int) -> Snapshot:
    """Reads *keys* at one revision, linearizably. Raises Corrupt for a value we would not write."""
    gets = tuple(Get(bytes(key)) for key in keys)
    answer = await kv.txn(Request(reads=gets), deadline_ms=deadline_ms)
    reads = {}
    for key, items in zip(keys, answer.ranges, strict=True):
        value = decode(key.value_type, items[0].value, key=str(key)) if items else None
        reads[bytes(key)] = Read(value, items[0].mod_revision if items else 0)
    return Snapshot(answer.revision, reads)


@frozen
class Stamp:
    """Values that only the committer assigns, in the order in which changes commit."""

    catalog_version: int | None
    """The version this change makes; None when it writes no metadata."""
    submission: int
    """A number above that of every procedure that is not over."""
    at_ms: int
    """Commit time, wall clock; rises from one catalog version to the next."""


Deferred = Callable[[Stamp], bytes]
Copies = tuple[Put | Delete, ...]
MakeCopies = Callable[[int | None], Awaitable[Copies | None]]


@dataclass(frozen=True, slots=True)
class LargeChange:
    """The keys of entries that one transaction cannot hold: they are written after it."""

    copies: MakeCopies
    """Returns what the entries write, by the catalog of the given version, which is the newest
    (None: a draft): nothing else is committed while it runs. None: they are no longer the right
    entries."""


@frozen
class Txn:
    """Writes guarded by everything that was read. Plain data: building one does no I/O."""

    expect: Mapping[bytes, int] = field(default_factory=dict)
    """key -> mod_revision as seen; 0: the key did not exist."""
    empty: frozenset[Range] = frozenset()
    """Ranges that must not hold a single key."""
    unchanged: Mapping[Range, int] = field(default_factory=dict)
    """Range -> revision after which no key of it may have been put."""
    writes: Mapping[bytes, bytes | Deferred | None] = field(default_factory=dict)
    """key -> value, value still to be stamped by the committer, or None to delete."""
    entries: tuple[Entry, ...] = ()
    """Entries of the catalog log for this change, whose keys are among `writes`
    (keys/commit/change.py); empty: it changes no metadata."""
    large: LargeChange | None = None
    """Set where keys of `entries` are not among `writes`, since one transaction cannot hold
    them."""

    @property
    def ranges(self) -> frozenset[Range]:
        """Ranges that it compares."""
        return self.empty.union(self.unchanged)

    @classmethod
    def on(cls, read_set: Snapshot) -> "Txn":
        return cls({key: read.mod_revision for key, read in read_set.reads.items()})

    def expecting(self, key: Key[Any], mod_revision: int) -> "Txn":
        raw = bytes(key)
        assert self.expect.get(raw, mod_revision) == mod_revision
        return self._with({**self.expect, raw: mod_revision}, self.writes)

    def while_empty(self, keys: Range) -> "Txn":
        empty = self.empty | {keys}
        return replace(self, empty=empty)

    def while_unchanged(self, keys: Range, revision: int) -> "Txn":
        """Refused if a key of *keys* was put after *revision*, the revision of what was decided by.

        A key that was deleted since is not noticed: for decisions that fewer keys cannot make wrong
        (docs/decisions/0195).
        """
        unchanged = _strictest(self.unchanged, {keys: revision})
        return replace(self, unchanged=unchanged)

    def put(self, key: Key[V], value: V, *, derived_from: Key[Any] | None = None) -> "Txn":
        """A key that is written was read first, or its text is derived from one that was."""
        return self._write(key, encode(value), derived_from)

    def put_stored(self, key: Key[Any], raw: bytes) -> "Txn":
        """Writes a key like `put`, with a value that is in its stored form already."""
        return self._write(key, raw, None)

    def put_stamped(
        self, key: Key[V], make: Callable[[Stamp], V], *, derived_from: Key[Any] | None = None
    ) -> "Txn":
        """Writes a key like `put`, with a value that contains parts of the committer's stamp."""
        return self._write(key, lambda stamp: encode(make(stamp)), derived_from)

    def delete(self, key: Key[Any], *, derived_from: Key[Any] | None = None) -> "Txn":
        return self._write(key, None, derived_from)

    def also(self, other: "Txn") -> "Txn":
        """Returns the transaction of both. Raises Conflict if they read one key at different
        revisions."""
        torn = [
            key
            for key, revision in other.expect.items()
            if self.expect.get(key, revision) != revision
        ]
        if torn:
            raise Conflict(stale=[key.decode() for key in sorted(torn)])
        assert not self.writes.keys() & other.writes.keys(), "two writes to one key"
        is_large = self.large is not None or other.large is not None
        assert not (is_large and self.entries and other.entries), "keys of all entries, or of none"
        return Txn(
            {**self.expect, **other.expect},
            self.empty | other.empty,
            _strictest(self.unchanged, other.unchanged),
            {**self.writes, **other.writes},
            self.entries + other.entries,
            self.large or other.large,
        )

    def _write(
        self, key: Key[Any], value: bytes | Deferred | None, derived_from: Key[Any] | None
    ) -> "Txn":
        assert not key.is_logged, f"{key} is written by an entry of the catalog log alone"
        raw = bytes(key)
        read = raw if derived_from is None else bytes(derived_from)
        assert read in self.expect, f"{key} is written but {read!r} was never read"
        assert raw not in self.writes, f"{key} is written twice"
        assert len(self.writes) < TXN_OPS_MAX
        return self._with(self.expect, {**self.writes, raw: value})

    def _with(
        self, expect: Mapping[bytes, int], writes: Mapping[bytes, bytes | Deferred | None]
    ) -> "Txn":
        """Returns a copy with other reads and writes, in a fifth of the time of `replace`: a create
        makes nine of them."""
        return Txn(expect, self.empty, self.unchanged, writes, self.entries, self.large)


def _strictest(left: Mapping[Range, int], right: Mapping[Range, int]) -> Mapping[Range, int]:
    """Returns both; of two revisions for one range the older."""
    if not left or not right:
        return left or right
    return {**right, **{keys: min(since, right.get(keys, since)) for keys, since in left.items()}}


NOTHING = Txn()
