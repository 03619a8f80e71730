"""The part of the store that tells of the catalog log, and what one revision of it says."""

from collections.abc import Sequence
from dataclasses import dataclass

from keys.catalog.snapshot_loading import snapshots_in
from keys.commit.batch import VERSION_KEY
from keys.commit.staged_parts import MissingParts, is_staged, whole_update
from keys.key import Range
from keys.model.log import CatalogUpdate, CatalogUpdateKey, CatalogVersion
from keys.model.snapshot.snapshots import SnapshotVersion, SnapshotVersionKey
from keys.store.kv import ReadableStore, Watched
from keys.value import decode
from metasrv_base.errors import Unavailable

SNAPSHOTS_KEY = bytes(SnapshotVersionKey())
WATCHED = Range(SNAPSHOTS_KEY, VERSION_KEY + b"\0")
"""The key that names the snapshots, the updates and the version, in this order; parts of snapshots
sort before them."""


@dataclass(frozen=True, slots=True)
class LogNews:
    """The changes of one revision."""

    revision: int
    stored: CatalogVersion | None
    """The version that the revision declares; None: none, or it was deleted."""
    snapshots: SnapshotVersion | None
    """The snapshots that are kept from then on; None: the same as before."""
    added: Sequence[tuple[int, bytes]]
    """Version and stored form of each update, in order of versions."""
    newest_deleted: int
    """The newest version whose update was deleted; 0: none."""


def news_of(watched: Watched) -> LogNews:
    """Raises Corrupt for keys and values that the log cannot have."""
    stored, snapshots, newest_deleted = None, None, 0
    added: list[tuple[int, bytes]] = []
    for event in watched.events:
        if event.key == VERSION_KEY:
            stored = None if event.value is None else newest_in(event.value)
        elif event.key == SNAPSHOTS_KEY:
            snapshots = snapshots if event.value is None else snapshots_in(event.value)
        elif event.value is None:
            newest_deleted = max(newest_deleted, CatalogUpdateKey.parse(event.key).version)
        else:
            added.append((CatalogUpdateKey.parse(event.key).version, event.value))
    added.sort()
    return LogNews(watched.revision, stored, snapshots, added, newest_deleted)


async def updates_in(
    kv: ReadableStore, log_news: LogNews, *, after: int, deadline_ms: int
) -> Sequence[CatalogUpdate]:
    """The updates above version *after*, whole, in order. Raises Corrupt, and Unavailable where
    parts of one have gone since: the log begins above it."""
    new = [
        decode(CatalogUpdate, raw, key=str(CatalogUpdateKey(version)))
        for version, raw in log_news.added
        if version > after
    ]
    try:
        return [await whole_update(kv, update, deadline_ms=deadline_ms) for update in new]
    except MissingParts as error:
        raise Unavailable(what="an update", reason="its parts were deleted") from error


def logged_bytes(raw: bytes) -> int:
    """Stored bytes of an update, with those of its parts."""
    if not is_staged(raw):
        return len(raw)
    staged = decode(CatalogUpdate, raw, key="an update in parts").staged
    return len(raw) + (0 if staged is None else staged.size_bytes)


def newest_in(raw: bytes) -> CatalogVersion:
    """The stored value of the catalog's version. Raises Corrupt."""
    return decode(CatalogVersion, raw, key=VERSION_KEY.decode())
