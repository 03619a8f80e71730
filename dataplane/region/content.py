"""What a region holds in memory and in files at this moment, and what of it a reader is given."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dataplane.region.columns import ColumnDef
from dataplane.region.floor import check_floor
from dataplane.region.flush import Frozen
from dataplane.region.group import Staged
from dataplane.region.lookup import View
from dataplane.region.manifest import Manifest, Remembered
from dataplane.region.memtable import Memtable
from dataplane.region.open_files import OpenFiles
from dataplane.region.opening import Opened
from dataplane.region.place import RegionPlace
from dataplane.region.schema import RegionSchema


class Content:
    """Safe for threads: `lock` guards whatever changes, and is never held during I/O."""

    def __init__(self, place: RegionPlace, opened: Opened) -> None:
        self.lock = threading.Lock()
        self.files = OpenFiles(
            place.files, opened.mine, opened.files_written, opened.manifest.files
        )
        self.memtable: Memtable = opened.memtable
        self.frozen: Frozen | None = None
        """What is being flushed; also what a flush that failed has left."""
        self.statements = opened.statements
        self.schema = opened.manifest.table_schema
        self.version, self.sequence = opened.manifest.version, opened.manifest.sequence

    @property
    def memtables(self) -> list[Memtable]:
        """Newest first."""
        return [self.memtable, *([self.frozen.memtable] if self.frozen else [])]

    @contextmanager
    def view(self, schema_version: int | None = None) -> Iterator[View]:
        """What a reader of that schema version sees; no file of it is removed meanwhile.

        None: a reader whom no floor concerns. Raises Conflict `schema-version-stale`.
        """
        with self.lock:
            if schema_version is not None:
                check_floor(self.schema, schema_version)
            counted = tuple((memtable, memtable.batches) for memtable in self.memtables)
            readers = self.files.take()
        try:
            yield View(counted, readers, self.lock)
        finally:
            with self.lock:
                self.files.give_back(readers)

    def add(self, staged: Sequence[Staged], wall_ms: int) -> None:
        """Batches that are durable, in order."""
        with self.lock:
            for one in staged:
                self.memtable.add(one.version, one.rows, one.keys, wall_ms)
                self.version = one.version
                self.sequence += 1
                self.statements.add(
                    Remembered(
                        statement_id=one.statement_id, version=one.version, rows=len(one.keys)
                    )
                )

    def freeze(self, log_from: int, closed_bytes: int, columns: Sequence[ColumnDef]) -> None:
        """From now on rows go to a new memtable. Nobody writes meanwhile."""
        with self.lock:
            self.frozen = Frozen(self.memtable, log_from, self.sequence, closed_bytes)
            self.memtable = Memtable(columns)

    def follow(self, manifest: Manifest, flushed: Frozen | None) -> None:
        """The manifest is current; `flushed`: rows that its files hold."""
        with self.lock:
            self.files.follow(manifest.files)
            self._take_schema(manifest.table_schema)
            if flushed is not None:
                self.frozen = None

    def _take_schema(self, schema: RegionSchema) -> None:
        if schema.columns != self.schema.columns:
            self.memtable.reshape(schema.columns or ())
        self.schema = schema
