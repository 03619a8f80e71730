"""Takes files that a job has made: entries of the region's rows, or rows from elsewhere."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import islice

import pyarrow as pa

from dataplane.region.compaction.flush import stored_position
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.current_manifest import CurrentManifest
from dataplane.region.engine.reading import RegionReader
from dataplane.region.engine.serving import Serving
from dataplane.region.engine.writer import RegionWriter
from dataplane.region.files.file_reader import FileReader
from dataplane.region.format.columns import KEY, OP, PUT
from dataplane.region.format.families import FAMILY, ROW, ROWS
from dataplane.region.indexes.index_entries import IndexDef
from dataplane.region.indexes.unique_recheck import (
    Rivals,
    Seen,
    contested,
    recheck_bytes,
    settle_some,
    written_since,
)
from dataplane.region.manifests.adoption import Ingest, adopted, entry_of, ingested, sync_attempt
from dataplane.region.manifests.manifest import Manifest
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.batches import BatchHeader
from metasrv_base.wire.node.orders import DataFile

PUTS_AT_ONCE = 8_192
PREPARED_BYTES_MAX = 8 << 20
"""The most bytes of keys in one `Prepared`. The next one finds the others, since a key that was
settled is not found again."""
Batch = tuple[BatchHeader, pa.RecordBatch]

_KEY_BYTES = 120  # measured: an object and its place in a set, without the key itself


@dataclass(frozen=True, slots=True)
class Prepared:
    """Keys that taking the entries would have left wrong, when the region was at that version."""

    version: int
    keys: frozenset[bytes]
    is_whole: bool = True
    """Whether these are all keys; if not, it must be prepared again once these are settled."""


class FileIngest:
    """Takes files and entries of jobs into a region. Each call may be repeated, also by another
    opening: an entry that was put is not put twice.

    It has no lock of its own: files are taken in a change of the manifest, entries are put as a
    batch of the writer.
    """

    def __init__(
        self,
        serving: Serving,
        manifest: CurrentManifest,
        content: RegionContent,
        reader: RegionReader,
        writer: RegionWriter,
    ) -> None:
        self._place = serving.place
        self._manifest = manifest
        self._content = content
        self._reader = reader
        self._writer = writer
        self._log = writer.log

    def adopt(self, procedure: str, attempt: str, files: Sequence[DataFile]) -> bool:
        """Exchanges all borrowed inputs for `files`, in one manifest that names the procedure.

        False: that manifest exists; it was done before. `attempt` is `attempts/{name}`.

        The records of borrowed logs are retained no more: a copy that lacks them needs files.
        """
        with self._manifest.changing() as manifest:
            if procedure in manifest.adopted:
                return False
            borrowed_to = stored_position(self._log.borrowed_to)
            new_manifest = adopted(manifest, procedure, attempt, files, borrowed_to)
            sync_attempt(self._place.disk, self._place.root, attempt, files)
            self._manifest.publish(new_manifest, replaced=map(entry_of, files))
        with self._log.writing:
            self._log.give_back()
        return True

    def prepare(self, source: Ingest) -> Prepared:
        """The long part of an ingest: the files are durable then, and what stands in the way of
        entries of a unique index is known. It may go on beside writers."""
        version = self._content.readable_version()
        if not self._may_take(source) or not source.unique_columns:
            return Prepared(version, frozenset())
        keys: set[bytes] = set()
        keys_bytes = 0
        with self._seen(source) as snapshot:
            for key in contested(snapshot):
                keys.add(key)
                keys_bytes += len(key) + _KEY_BYTES
                if keys_bytes >= PREPARED_BYTES_MAX:
                    return Prepared(version, frozenset(keys), is_whole=False)
        return Prepared(version, frozenset(keys))

    def settle(self, source: Ingest, prepared: Prepared) -> None:
        """Puts the entries of the prepared keys. Nobody writes meanwhile. Raises as `ingest`."""
        self._put_all(self.entries_first(source, prepared, whole=False))

    def ingest(self, source: Ingest, prepared: Prepared | None = None) -> bool:
        """Takes the files, in one manifest that names the procedure. False: it was done before.

        Nobody writes meanwhile. Raises Refused `unique-violation` where two rows have the values
        of a unique index; then nothing was taken.
        """
        if not self._may_take(source):
            return False
        self._put_all(self._entries(source, prepared, whole=True))
        with self._manifest.changing() as manifest:
            self._manifest.publish(self._ingested(manifest, source))
            return True

    def entries_first(
        self, source: Ingest, prepared: Prepared | None = None, *, whole: bool = True
    ) -> Iterator[Batch]:
        """Yields batches of entries that would lose to what speaks of another row: each is written
        before the next is asked for, and all before the files are taken. None of files that were
        taken before; else the files are durable. Not *whole*: those of *prepared* alone.

        Nobody else writes meanwhile. Raises as `ingest`.
        """
        if self._may_take(source):
            yield from self._entries(source, prepared, whole=whole)

    def _entries(
        self, source: Ingest, prepared: Prepared | None, *, whole: bool
    ) -> Iterator[Batch]:
        if not source.unique_columns:
            return
        prepared = prepared or self.prepare(source)
        yield from self._put_again(source, prepared)
        while whole and not prepared.is_whole:
            prepared = self.prepare(source)
            yield from self._put_again(source, prepared)

    def _may_take(self, source: Ingest) -> bool:
        """Whether the files are still to be taken; False if they were taken before. Raises what is
        wrong with them; makes them durable."""
        with self._manifest.changing() as manifest:
            if source.name in manifest.adopted:
                return False
            self._ingested(manifest, source)
            sync_attempt(self._place.disk, self._place.root, source.attempt, source.files)
            return True

    def _ingested(self, manifest: Manifest, source: Ingest) -> Manifest:
        return ingested(manifest, source, self._content.readable_version())

    def _put_again(self, source: Ingest, prepared: Prepared) -> Iterator[Batch]:
        """Yields the entries that would lose to what speaks of another row, part by part. Where two
        rows have the values of one, those that were put before are true, and harmless."""
        keys, start = sorted(prepared.keys), b""
        rivals = Rivals(self._index_of(source))
        while True:
            with self._seen(source) as snapshot:
                since = written_since(snapshot.entries, prepared.version, start)
                ready = islice(keys, bisect_left(keys, start), None)
                done = settle_some(merge(ready, since), snapshot, rivals)
            puts = [] if rivals.total else done.puts
            for first in range(0, len(puts), PUTS_AT_ONCE):
                entries = puts[first : first + PUTS_AT_ONCE]
                yield self._header(source.index), entry_batch(source.index, entries)
            if done.following is None:
                rivals.check()
                return
            start = done.following

    def _put_all(self, batches: Iterator[Batch]) -> None:
        for batch in batches:
            (answer,) = self._writer.apply([batch])
            if isinstance(answer, MetaError):
                raise answer

    def _header(self, index: int) -> BatchHeader:
        """No other batch has its statement id: none was given these versions."""
        version = self._content.readable_version()
        manifest = self._manifest.value
        return BatchHeader(
            table_id=table_of(RegionId(manifest.spec.region_id)),
            schema_version=self._content.schema.version,
            epoch=manifest.epoch,
            statement_id=f"look-again/{index}/{version}",
            maintains_indexes=True,
        )

    @contextmanager
    def _seen(self, source: Ingest) -> Iterator[Seen]:
        """Reserves the memory of a look at all entries, and of the keys that it finds, within the
        block. Raises Unavailable `not-ready` where there is no room."""
        index = self._index_of(source)
        made = tuple(FileReader(self._place.files, entry_of(file)) for file in source.files)
        with self._reader.view([ROWS, source.index]) as views:
            snapshot = Seen(views[source.index], views[ROWS], made, index)
            size = recheck_bytes(snapshot) + PREPARED_BYTES_MAX
            with self._place.budget.merging(size) as has_room:
                if not has_room:
                    reason = "the memory for merges and looks at entries is taken"
                    raise Unavailable("not-ready", reason=reason, needed_bytes=size)
                yield snapshot

    def _index_of(self, source: Ingest) -> IndexDef:
        columns = self._content.columns
        return IndexDef.of(source.index, source.unique_columns, columns, unique=True)


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
