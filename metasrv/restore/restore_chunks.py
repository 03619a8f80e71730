"""Splits the writes of a restore into transactions. Pure.

Metadata is written only together with an update of the log (I5), so each transaction that has some
has one, whose number follows that of the backup.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from keys.model.log import CatalogUpdate, CatalogUpdateKey, CatalogVersion, Entry
from keys.model.origin import Origin
from keys.store.kv import Put
from keys.value import encode
from metasrv.restore.restored_procedures import BY
from metasrv.restore.restored_values import Restored

CHUNK_KEYS = 100
CHUNK_BYTES = 600_000
"""Bytes of a transaction with several keys. A larger key goes by itself: it was stored in one
transaction, with its entry, once before."""
ENTRY_BYTES = 120
"""The bytes of an entry beside the values that it holds."""


@dataclass(slots=True)
class RestoreChunks:
    """`version` is that of the last update that was made, or of the backup."""

    version: CatalogVersion
    restore_id: str
    _puts: list[Put] = field(default_factory=list)
    _entries: list[Entry] = field(default_factory=list)
    _is_logged: bool = False
    _bytes: int = 0

    def of(self, all_restored: Iterable[Restored]) -> Iterator[tuple[Put, ...]]:
        """Yields the writes of one transaction after the other."""
        for restored in all_restored:
            size = _size(restored)
            if self._is_full(restored, size):
                yield self._taken()
            self._puts += restored.puts
            self._entries += restored.entries
            self._is_logged = self._is_logged or restored.is_logged
            self._bytes += size
        if self._puts or self._entries:
            yield self._taken()

    def _is_full(self, restored: Restored, size: int) -> bool:
        if not (self._puts or self._entries):
            return False
        keys = max(len(self._puts) + len(restored.puts), len(self._entries))
        return keys > CHUNK_KEYS or self._bytes + size > CHUNK_BYTES

    def _taken(self) -> tuple[Put, ...]:
        puts, is_logged = self._puts, self._is_logged
        if is_logged:
            puts.append(self._update())
        self._puts, self._entries, self._is_logged, self._bytes = [], [], False, 0
        return tuple(puts)

    def _update(self) -> Put:
        number, at_ms = self.version.version + 1, self.version.at_ms + 1
        self.version = CatalogVersion(version=number, at_ms=at_ms)
        update = CatalogUpdate(
            version=number,
            at_ms=at_ms,
            procedure=self.restore_id,
            origin=Origin(by=BY, request_id=self.restore_id),
            entries=tuple(self._entries),
        )
        return Put(bytes(CatalogUpdateKey(number)), encode(update))


def _size(restored: Restored) -> int:
    """Bytes of the keys, and of the entries, which hold the same values once more."""
    puts = sum(len(put.key) + len(put.value) for put in restored.puts)
    entries = ENTRY_BYTES * len(restored.entries)
    return puts + entries + (puts if restored.entries else 0)
