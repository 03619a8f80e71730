"""The seam between a node and the engines of its regions: what every engine does, as interfaces.

An engine makes and opens regions; a region that is open has four parts, by which rows come in and
go out, and the node's upkeep and jobs reach it. What they promise is the same of every engine:
versions that rise, statements that are applied once, floors, marks, conditions on keys, entries of
indexes, and the fence. What outlives the process is the engine's own (`metasrv_base/engines.py`).
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from dataplane.region.compaction.compaction import Merged
from dataplane.region.engine.file_ingest import Prepared
from dataplane.region.engine.group import Applied
from dataplane.region.engine.reading import Reserve, ScanBounds
from dataplane.region.format.checksum import RowsDigest
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.names import Opening
from dataplane.region.format.room import LookupRoom
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.adoption import Ingest
from dataplane.region.memory.region_stats import RegionStats
from dataplane.region.place import OpenOrder, RegionPlace
from dataplane.region.reads.value_scan import ValueRows
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.batches import BatchHeader
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.orders import DataFile


class RegionWrites(Protocol):
    """The writes of a region, as `dataplane.region.engine.writer.RegionWriter`."""

    def apply(
        self, batches: Sequence[tuple[BatchHeader, pa.RecordBatch]]
    ) -> list[Applied | MetaError]: ...

    def logged_bytes(self, batch: pa.RecordBatch) -> int: ...


class RegionReads(Protocol):
    """The reads of a region, as `dataplane.region.engine.reading.RegionReader`."""

    def get(
        self,
        keys: Sequence[bytes],
        column_ids: Collection[int] | None = None,
        schema_version: int | None = None,
        room: LookupRoom | None = None,
    ) -> pa.Table: ...

    def get_resident(
        self,
        keys: Sequence[bytes],
        column_ids: Collection[int] | None,
        schema_version: int,
        room: LookupRoom | None = None,
    ) -> pa.Table | None: ...

    def get_entries(
        self,
        index: int,
        keys: Sequence[bytes],
        schema_version: int | None = None,
        room: LookupRoom | None = None,
    ) -> pa.Table: ...

    def scan(
        self,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        limit: int | None = None,
        schema_version: int | None = None,
        reserve: Reserve = ...,
    ) -> Generator[pa.RecordBatch]: ...

    def scan_values(
        self,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        rows_at_once: int = ...,
        schema_version: int | None = None,
        reserve: Reserve = ...,
    ) -> Generator[ValueRows]: ...

    def scan_index(
        self,
        index: int,
        keys: KeyRange | None = None,
        column_ids: Collection[int] | None = None,
        schema_version: int | None = None,
        bounds: ScanBounds = ...,
    ) -> Generator[pa.RecordBatch]: ...

    def scan_entries(
        self,
        index: int,
        keys: KeyRange | None = None,
        limit: int | None = None,
        schema_version: int | None = None,
        reserve: Reserve = ...,
    ) -> Generator[pa.RecordBatch]: ...

    def digest(
        self,
        schema_version: int | None = None,
        index: int | None = None,
        reserve: Reserve = ...,
    ) -> RowsDigest: ...


class RegionUpkeep(Protocol):
    """The maintenance of a region, as `dataplane.region.engine.maintenance.RegionMaintenance`: each
    call in a thread, but those that say that they wait for nothing."""

    def needs_flush(self) -> bool: ...

    def flush(self, *, to_end: bool = False) -> bool: ...

    def freeze(self) -> None: ...

    def is_merge_due(self) -> bool: ...

    def compact(self) -> Merged | None: ...

    def has_unread_files(self) -> bool: ...

    def sweep(self) -> int: ...

    def collect(self, keep_attempts: Iterable[str] = ()) -> int: ...

    def close_log(self) -> None: ...

    def forget_statements(self) -> None: ...


class RegionIngest(Protocol):
    """The ingest of files, as `dataplane.region.engine.file_ingest.FileIngest`."""

    def adopt(self, procedure: str, attempt: str, files: Sequence[DataFile]) -> bool: ...

    def prepare(self, source: Ingest) -> Prepared: ...

    def settle(self, source: Ingest, prepared: Prepared) -> None: ...

    def ingest(self, source: Ingest, prepared: Prepared | None = None) -> bool: ...

    def entries_first(
        self, source: Ingest, prepared: Prepared | None = None, *, whole: bool = True
    ) -> Iterator[tuple[BatchHeader, pa.RecordBatch]]: ...


class ReadableRegion(Protocol):
    """A region whose rows can be read: one that is served, or a copy. Safe for threads."""

    @property
    def spec(self) -> RegionSpec: ...

    @property
    def schema(self) -> RegionSchema: ...

    @property
    def reader(self) -> RegionReads: ...


class ServedRegion(ReadableRegion, Protocol):
    """A region that is open in this process, whatever its engine. Safe for threads; what waits for
    a disk runs in one. After an error that leaves its state in doubt, or behind a higher fence, it
    answers nothing but that error (`stopped`)."""

    @property
    def place(self) -> RegionPlace: ...

    @property
    def writer(self) -> RegionWrites: ...

    @property
    def maintenance(self) -> RegionUpkeep: ...

    @property
    def file_ingest(self) -> RegionIngest: ...

    @property
    def opening(self) -> Opening: ...

    @property
    def stopped(self) -> MetaError | None:
        """The reason why this opening serves no more; None: it serves."""
        ...

    @property
    def file_count(self) -> int:
        """Files that its manifest names."""
        ...

    @property
    def borrowed_roots(self) -> tuple[str, ...]: ...

    @property
    def has_marks(self) -> bool: ...

    def must_have_room(self, rows: pa.RecordBatch) -> None:
        """Raises Unavailable while the engine takes no such batch: its files wait to be merged, or
        its memory is full. Waits for nothing."""
        ...

    def stats(self) -> RegionStats:
        """Waits for nothing."""
        ...

    def set_schema(
        self,
        newer: RegionSchema,
        mark: str | None = None,
        close: Iterable[str] = (),
        *,
        reserves: bool = False,
    ) -> int: ...

    def open_mark(self, name: str, version: int) -> bool: ...

    def close_mark(self, name: str) -> bool: ...

    def borrowed(self) -> Borrowed: ...

    def snapshot(self, mark: str, indexes: Iterable[int] | None = ()) -> Snapshot:
        """Files that other processes can read."""
        ...

    def close(self) -> None: ...


Options = Mapping[str, int]


class RegionEngine(Protocol):
    """Makes and opens regions. Options were checked (`metasrv_base.engines.must_be_options`)."""

    def create(
        self,
        region_place: RegionPlace,
        spec: RegionSpec,
        epoch: int,
        replaces: Sequence[str],
        options: Options,
    ) -> ServedRegion:
        """A region without rows, open. The same again at one epoch opens what it made, as long as
        nothing was acknowledged that is gone: then Unavailable `region-lost`."""
        ...

    def open(self, region_place: RegionPlace, order: OpenOrder, options: Options) -> ServedRegion:
        """Opens what is there, behind raised fences. Raises Unavailable `region-lost` where rows
        are gone; never makes an empty region."""
        ...
