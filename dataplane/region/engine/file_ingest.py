"""How a region takes what a job has made: entries of its rows, or rows from elsewhere."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from dataplane.region.engine.group import Applied
from dataplane.region.engine.maintenance import Maintained
from dataplane.region.engine.reading import ReadableRegion
from dataplane.region.files.file_reader import FileReader
from dataplane.region.format.columns import KEY, OP, PUT
from dataplane.region.format.families import FAMILY, ROW, ROWS
from dataplane.region.indexes.index_entries import IndexDef
from dataplane.region.indexes.unique_recheck import Seen, contested, settled, written_since
from dataplane.region.manifests.adoption import Ingest, entry_of, ingested, sync_attempt
from dataplane.region.manifests.manifest import Manifest
from metasrv_base.errors import MetaError
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.batches import BatchHeader

PUTS_AT_ONCE = 8_192
PREPARED_BYTES_MAX = 8 << 20
"""Of keys that one `Prepared` has. The others are found by the next, since a key that was settled
is not found again."""
_KEY_BYTES = 120  # measured: an object and its place in a set, without the key itself


@dataclass(frozen=True, slots=True)
class Prepared:
    """Keys that taking the entries would have left wrong, when the region was at that version."""

    version: int
    keys: frozenset[bytes]
    is_whole: bool = True
    """False: there are more keys. Once these are settled, it must be prepared again."""


class FileIngest(ReadableRegion, Maintained):
    """Both calls may be repeated, also by another opening: what was put again is not put twice."""

    @abstractmethod
    def apply(
        self, batches: Sequence[tuple[BatchHeader, pa.RecordBatch]]
    ) -> list[Applied | MetaError]: ...

    def prepare(self, source: Ingest) -> Prepared:
        """The long part of an ingest: the files are durable then, and what stands in the way of
        entries of a unique index is known. It may go on beside writers."""
        with self._content.lock:
            version = self._content.version
        if not self._may_take(source) or not source.unique_columns:
            return Prepared(version, frozenset())
        keys: set[bytes] = set()
        keys_bytes = 0
        with self._seen(source) as seen:
            for key in contested(seen):
                keys.add(key)
                keys_bytes += len(key) + _KEY_BYTES
                if keys_bytes >= PREPARED_BYTES_MAX:
                    return Prepared(version, frozenset(keys), is_whole=False)
        return Prepared(version, frozenset(keys))

    def settle(self, source: Ingest, prepared: Prepared) -> None:
        """Puts the entries of the prepared keys. Nobody writes meanwhile. Raises as `ingest`."""
        if self._may_take(source):
            self._put_again(source, prepared)

    def ingest(self, source: Ingest, prepared: Prepared | None = None) -> bool:
        """Takes the files, in one manifest that names the procedure. False: it was done before.

        Nobody writes meanwhile. Raises Refused `unique-violation` where two rows have the values
        of a unique index; then nothing was taken.
        """
        if not self._may_take(source):
            return False
        if source.unique_columns:
            prepared = prepared or self.prepare(source)
            self._put_again(source, prepared)
            while not prepared.is_whole:
                prepared = self.prepare(source)
                self._put_again(source, prepared)
        with self._publishing:
            self._serving.check()
            self._publish(self._ingested(source))
            return True

    def _may_take(self, source: Ingest) -> bool:
        """False: it was taken before. Raises what is wrong with it; its files are durable then."""
        with self._publishing:
            self._serving.check()
            if source.name in self._manifest.adopted:
                return False
            self._ingested(source)
            sync_attempt(self.place.disk, self.place.root, source.attempt, source.files)
            return True

    def _ingested(self, source: Ingest) -> Manifest:
        with self._content.lock:
            version = self._content.version
        return ingested(self._manifest, source, version)

    def _put_again(self, source: Ingest, prepared: Prepared) -> None:
        """Entries that would lose to what speaks of another row."""
        with self._seen(source) as seen:
            since = written_since(seen.entries, prepared.version)
            puts = settled({*prepared.keys, *since}, seen)
        for first in range(0, len(puts), PUTS_AT_ONCE):
            batch = entry_batch(source.index, puts[first : first + PUTS_AT_ONCE])
            (answer,) = self.apply([(self._header(source.index), batch)])
            if isinstance(answer, MetaError):
                raise answer

    def _header(self, index: int) -> BatchHeader:
        """No other batch has its statement id: none was given these versions."""
        with self._content.lock:
            version = self._content.version
        return BatchHeader(
            table_id=table_of(RegionId(self.spec.region_id)),
            schema_version=self.schema.version,
            epoch=self.opening.epoch,
            statement_id=f"look-again/{index}/{version}",
            maintains_indexes=True,
        )

    @contextmanager
    def _seen(self, source: Ingest) -> Iterator[Seen]:
        index = IndexDef.of(source.index, source.unique_columns, self.spec.columns, unique=True)
        made = tuple(FileReader(self.place.files, entry_of(file)) for file in source.files)
        with self._view([ROWS, source.index]) as views:
            yield Seen(views[source.index], views[ROWS], made, index)


def entry_batch(index: int, entries: Sequence[tuple[bytes, bytes]]) -> pa.RecordBatch:
    """Puts the entries: each its key and that of its row."""
    count = len(entries)
    return pa.RecordBatch.from_pydict(
        {
            KEY: pa.array([key for key, _ in entries], pa.binary()),
            OP: pa.repeat(pa.scalar(PUT, pa.uint8()), count),
            FAMILY: pa.repeat(pa.scalar(index, pa.int32()), count),
            ROW: pa.array([row for _, row in entries], pa.binary()),
        }
    )
