"""The store as a port: bytes under revisions. etcd in production, MemoryKv in tests.

One conformance suite (tests/keys/store/conformance) runs on both. Keys are relative to the
cluster's prefix, which the adapter adds and removes. Nothing here retries: an `Unknown` is settled
by the committer, which alone may send the same bytes again (docs/protocols.md P1).
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple, NewType, Protocol

from metasrv_base.values.frozen import frozen

LeaseId = NewType("LeaseId", int)

TXN_OPS_MAX = 128  # etcd's default limit: on compares, and again on each branch
OUT_OF_SPACE = "no-space"  # the `reason` of an Unknown
TXN_BYTES_MAX = 1_500_000  # etcd's default request limit of 1.5 MiB, less what framing takes
PAGE_KEYS_MAX = 1_000  # keys per page of a range read, so that one answer stays small


class KeyValue(NamedTuple):
    """One key as the store holds it. `lease` 0: none."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    lease: int = 0


class Compare(NamedTuple):
    """True if every key in [key, end) has this `mod_revision`; 0 means that none exists.

    `end` None: the one key.
    """

    key: bytes
    mod_revision: int
    end: bytes | None = None
    or_older: bool = False
    """True also of keys with a lower `mod_revision`: no key was put after that revision. A range
    without keys compares as unchanged, and a deletion is not noticed."""


class Get(NamedTuple):
    """Read [key, end) in key order; `end` None: the one key. `limit` 0: all."""

    key: bytes
    end: bytes | None = None
    limit: int = 0
    keys_only: bool = False
    count_only: bool = False
    """No items: the answer is the page's `count`. A transaction's answer has no count."""
    newer_than: int = 0
    """Only keys put after that revision; 0: all. `limit` counts those, `count` counts all."""


class Put(NamedTuple):
    key: bytes
    value: bytes
    lease: LeaseId | None = None


class Delete(NamedTuple):
    key: bytes


@frozen
class Request:
    """One transaction: if every compare holds, `writes` then `reads`; else `on_refusal` reads.

    At most TXN_OPS_MAX compares, and as many operations per branch; no key is put twice.
    """

    compares: tuple[Compare, ...] = ()
    writes: tuple[Put | Delete, ...] = ()
    reads: tuple[Get, ...] = ()
    on_refusal: tuple[Get, ...] = ()


@frozen
class TxnAnswer:
    """`revision` is the store's after the transaction; if it wrote, the revision of its writes.

    `ranges` answers `reads`, or `on_refusal` where a compare did not hold, in order.
    """

    succeeded: bool
    revision: int
    ranges: tuple[tuple[KeyValue, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class KeyPage:
    """A part of a range at one revision; `more` says that keys above the last one are left."""

    items: tuple[KeyValue, ...]
    revision: int
    more: bool
    count: int = 0
    """The number of all keys in the range, those above the limit included."""


@frozen
class Event:
    """A put (`value` set) or a deletion (`value` None) of one key."""

    key: bytes
    value: bytes | None
    mod_revision: int


@frozen
class Watched:
    """All events of one revision in the watched range, or a report of progress.

    With no events it says: nothing at or below `revision` is still to come.
    """

    revision: int
    events: tuple[Event, ...] = ()


class ReadableStore(Protocol):
    """The part of the store that a step of a procedure uses. Errors are those of Kv."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        """Refused("ddl-too-large") when a limit of the store is passed (nothing was done).

        Out of space, every put is Unknown (`reason="no-space"`), even one whose compares do not
        hold, until an operator has lifted the store's alarm; a transaction without puts is done.
        """
        ...

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        """Linearizable unless *serializable*; at *revision*, if given.

        Raises Conflict("history-expired") when that revision has been compacted.
        """
        ...


class Kv(ReadableStore, Protocol):
    """Deadlines are durations in ms from the call. Errors are those of metasrv_base/errors.py.

    A call that only reads raises Unavailable when it cannot be answered; one that may write raises
    Unknown unless it is certain that the store never saw it.
    """

    def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        """Events from *start_revision* on, in order, each revision whole and once.

        Survives the loss of the stream by resuming after the last revision it delivered. Raises
        Conflict("history-expired") when what it needs has been compacted, *start_revision* itself
        included: read again, then watch from the revision after.
        """
        ...

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        """Unknown when the store is out of space, as of a put; renewals go on."""
        ...

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        """True if the lease was renewed for its whole time; False if it is gone.

        Count the renewal from before the call (docs/protocols.md P4).
        """
        ...

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        """Ends the lease and deletes its keys. A lease that is gone already is no error."""
        ...

    async def compact(self, revision: int, *, deadline_ms: int) -> None: ...

    async def close(self) -> None: ...
