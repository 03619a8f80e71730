"""Writes to an open region: batches judged in order, logged together, then readable."""

from collections.abc import Sequence

import pyarrow as pa

from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.group import Applied, BatchRules, GroupRecord, WriteGroup
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.engine.reading import RegionReader
from dataplane.region.engine.serving import Serving, unknown_outcome
from dataplane.region.engine.shape import BatchShape
from dataplane.region.format.families import ROWS
from dataplane.region.log.log_writer import LogWriter
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.batches import BatchHeader


class RegionWriter:
    """Safe for threads: one group is written at a time, under the lock of the log."""

    def __init__(
        self,
        serving: Serving,
        content: RegionContent,
        log: LogWriter,
        reader: RegionReader,
        maintenance: RegionMaintenance,
    ) -> None:
        self._serving = serving
        self._content = content
        self._log = log
        self._reader = reader
        self._maintenance = maintenance
        self._shape: BatchShape | None = None
        """The shape of the batches that are taken. It is made anew when the columns change."""

    def apply(
        self, batches: Sequence[tuple[BatchHeader, pa.RecordBatch]]
    ) -> list[Applied | MetaError]:
        """Group commit: one answer for each batch, after one fsync and one look for all.

        An error in the list: `Refused` or `Conflict`: not done. `Unknown`: written, but not
        acknowledged; sent again with the same statement id it is settled. Raises if the region
        serves no more, and `Unavailable` if nothing of the group could be tried.
        """
        self._maintenance.make_room()
        self._maintenance.forget_statements()
        budget, content = self._serving.place.budget, self._content
        with self._log.writing, self._reader.view({ROWS} | content.schema.indexes) as views:
            remembers = budget.remembers_more
            epoch = self._serving.opening.epoch
            rules = BatchRules(epoch, content.schema, self._shape_now(), remembers)
            group = WriteGroup(rules, views, content.statements)
            wall_ms, version = self._serving.place.clock.wall_ms(), content.version
            for header, batch in batches:
                version = group.admit(header, batch, version, wall_ms)
            if not group.staged:
                return group.results()
            record = group.record()
            failure = self._write(record)
            if failure is None:
                content.add(record.content, wall_ms)
            return group.results(failure)

    def _shape_now(self) -> BatchShape:
        """The lock of the log is held."""
        columns = self._content.columns
        if self._shape is None or self._shape.columns is not columns:
            self._shape = BatchShape(columns)
        return self._shape

    def _write(self, record: GroupRecord) -> MetaError | None:
        """None: durable, and nobody had taken over. Otherwise the answer to the group."""
        try:
            with self._serving.in_doubt():
                self._log.append(record.payload, record.schemas, self._content.sequence + 1)
                self._serving.look()
        except Unavailable as error:
            if error.code == "storage-full":
                return error  # nothing was written
            return unknown_outcome(error)
        except MetaError as error:
            return unknown_outcome(error)
        return None
