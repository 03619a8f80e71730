"""Every version of every key under rising revisions: what etcd's store is, in memory.

Pure: no clock, no I/O. Semantics follow etcd's mvcc (3.4): a write of any number of keys makes one
revision; deleting what does not exist makes none; compacting at n keeps what was visible at n.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from keys.store.kv import Compare, Delete, Event, Get, KeyValue, Put, Watched
from metasrv_base.errors import Conflict, Unavailable

FIRST_REVISION = 1  # of a store that nobody has written to
TO_THE_END = b"\0"  # as the end of a range: no upper bound


class Mvcc:
    """The state behind MemoryKv. Every method is one atomic step."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self.compacted = 0
        """The oldest revision that can be read. What happened at it is not known any more: of a
        key that was deleted there, nothing is left to tell a watch."""
        self._versions: dict[bytes, list[tuple[int, KeyValue | None]]] = {}
        self._keys: list[bytes] = []
        self._log: list[Watched] = []

    def holds(self, compare: Compare) -> bool:
        """Returns whether *compare* holds, as in etcd: a range without keys compares as one
        absent key."""
        revisions = {item.mod_revision for item in self.scan(compare.key, compare.end)} or {0}
        if compare.or_older:
            return max(revisions) <= compare.mod_revision
        return revisions == {compare.mod_revision}

    def read(self, get: Get) -> tuple[KeyValue, ...]:
        """No items where only their count is asked for."""
        if get.count_only:
            return ()
        items = tuple(
            shown(item, get)
            for item in self.scan(get.key, get.end)
            if item.mod_revision > get.newer_than
        )
        return items[: get.limit] if get.limit else items

    def get(self, key: bytes) -> KeyValue | None:
        return self._at(key, self.revision)

    def scan(self, key: bytes, end: bytes | None, revision: int = 0) -> Iterator[KeyValue]:
        """Returns items in key order, as of *revision* (0: now)."""
        for name in self._names(key, end):
            item = self._at(name, revision or self.revision)
            if item is not None:
                yield item

    def kept(self) -> Iterator[KeyValue]:
        """Every version that has not been compacted away, of every key."""
        for versions in self._versions.values():
            yield from (item for _, item in versions if item is not None)

    def write(self, writes: Iterable[Put | Delete]) -> None:
        """All of *writes* as one revision."""
        revision = self.revision + 1
        events = tuple(event for write in writes for event in self._apply(write, revision))
        if events:
            self.revision = revision
            self._log.append(Watched(revision, events))

    def log_from(self, revision: int) -> Sequence[Watched]:
        """Returns the writes at *revision* and later, oldest first. Raises Conflict
        `history-expired`."""
        if revision <= self.compacted:
            raise Conflict("history-expired", asked=revision, oldest=self.compacted)
        return self._log[bisect_left(self._log, revision, key=lambda entry: entry.revision) :]

    def check_readable(self, revision: int) -> None:
        if revision < self.compacted:
            raise Conflict("history-expired", asked=revision, oldest=self.compacted)
        if revision > self.revision:
            raise Unavailable(asked=revision, newest=self.revision)

    def compact(self, revision: int) -> None:
        """Forgets what was over before *revision*. Compacting again is no error."""
        if revision > self.revision:
            raise Unavailable(asked=revision, newest=self.revision)
        if revision <= self.compacted:
            return
        self.compacted = revision
        self._log = [entry for entry in self._log if entry.revision > revision]
        for name, versions in list(self._versions.items()):
            older = [version for version in versions if version[0] <= revision]
            base = [version for version in older[-1:] if version[1] is not None]
            self._versions[name] = base + versions[len(older) :]
            if not self._versions[name]:
                del self._versions[name]
                del self._keys[bisect_left(self._keys, name)]

    def _apply(self, write: Put | Delete, revision: int) -> Iterator[Event]:
        before = self._at(write.key, self.revision)
        if isinstance(write, Delete):
            if before is not None:
                self._versions[write.key].append((revision, None))
                yield Event(write.key, None, revision)
            return
        created = before.create_revision if before else revision
        item = KeyValue(write.key, write.value, created, revision, write.lease or 0)
        if write.key not in self._versions:
            insort(self._keys, write.key)
        self._versions.setdefault(write.key, []).append((revision, item))
        yield Event(write.key, write.value, revision)

    def _at(self, key: bytes, revision: int) -> KeyValue | None:
        versions = self._versions.get(key, [])
        newest = [item for number, item in versions[-1:] if number <= revision]
        if newest:
            return newest[0]
        older = bisect_left(versions, revision + 1, key=lambda version: version[0])
        return versions[older - 1][1] if older else None

    def _names(self, key: bytes, end: bytes | None) -> list[bytes]:
        if end is None:
            return [key] if key in self._versions else []
        start = bisect_left(self._keys, key)
        stop = len(self._keys) if end == TO_THE_END else bisect_left(self._keys, end)
        return self._keys[start:stop]


def in_range(key: bytes, start: bytes, end: bytes) -> bool:
    return start <= key and (end == TO_THE_END or key < end)


def shown(item: KeyValue, get: Get) -> KeyValue:
    if not get.keys_only:
        return item
    return KeyValue(item.key, b"", item.create_revision, item.mod_revision, item.lease)
