"""Writes to an open region: batches judged in order, logged together, then readable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dataplane.log.records import LogPosition
from dataplane.region.engine.content import RegionContent
from dataplane.region.engine.group import (
    Applied,
    BatchRules,
    GroupAnswers,
    GroupRecord,
    Staged,
    StagedVersions,
    group_record,
)
from dataplane.region.engine.intake import BatchIntake, Expectations, take_in, too_large
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.engine.reading import RegionReader
from dataplane.region.engine.serving import Serving, unknown_outcome
from dataplane.region.engine.shape import BatchShape
from dataplane.region.format.families import ROWS
from dataplane.region.format.versions import next_version
from dataplane.region.log.log_writer import LogWriter, PositionedRecord
from dataplane.region.log.logged_group import LoggedGroup, LoggedStatement
from dataplane.region.manifests.floor import check_floor, check_index, check_maintained
from dataplane.region.memory.statements import StatementMemory
from dataplane.region.reads.lookup import LookupView, newest_versions
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable, Unknown
from metasrv_base.wire.limits import RECORD_BYTES_MAX
from metasrv_base.wire.node.batches import ABSENT, BatchHeader

FAILED_KEYS_SHOWN = 10


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
        self.log = log
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
        wall_ms = self._serving.place.clock.wall_ms()
        with self.log.writing:
            answers, record, failure = self._written(batches, wall_ms)
            if record is not None:
                self._content.add(record.content, wall_ms)
            return answers.results(failure)

    def order(self, batches: Sequence[tuple[BatchHeader, pa.RecordBatch]]) -> "OrderedGroup":
        """The first half of `apply`, for a region with copies: the group is durable in the own log,
        and neither readable nor answered. Nothing else is ordered, and no schema, mark or file is
        taken, before it is settled."""
        self._maintenance.make_room()
        self._maintenance.forget_statements()
        wall_ms = self._serving.place.clock.wall_ms()
        with self.log.writing:
            assert not self._has_unsettled, "one group at a time waits for the copies"
            answers, record, failure = self._written(batches, wall_ms)
            position = LogPosition(self._serving.opening.epoch, self.log.history.end)
            return OrderedGroup(answers, wall_ms, record, position, failure)

    def settle(
        self, ordered: "OrderedGroup", failure: Unknown | None = None
    ) -> list[Applied | MetaError]:
        """The second half: every copy that is required has the group. Returns the answers.
        *failure*: the group counts, but may not be acknowledged (P5.12)."""
        with self.log.writing:
            if ordered.record is not None:
                self._content.add(ordered.record.content, ordered.wall_ms)
            return ordered.answers.results(ordered.failure or failure)

    def add_logged(self, group: LoggedGroup, wall_ms: int) -> None:
        """Makes the next group of the log readable, which an earlier opening has written."""
        with self.log.writing:
            self._content.add(group, wall_ms)

    def logged_bytes(self, batch: pa.RecordBatch) -> int:
        """The bytes of a batch as it is logged, with all columns of the table: at least those that
        it has. Waits for nothing."""
        return self._shape_now().logged_bytes(batch)

    @property
    def _has_unsettled(self) -> bool:
        """Whether the log has a group that is not in memory."""
        return self.log.history.end > self._content.sequence

    def _written(
        self, batches: Sequence[tuple[BatchHeader, pa.RecordBatch]], wall_ms: int
    ) -> tuple[GroupAnswers, GroupRecord | None, MetaError | None]:
        """The answers of the group; its record, if it is durable in the log; the error of the
        writing."""
        budget, content = self._serving.place.budget, self._content
        with self._reader.view({ROWS} | content.schema.indexes) as views:
            remembers = budget.remembers_more
            epoch = self._serving.opening.epoch
            rules = BatchRules(epoch, content.schema, self._shape_now(), remembers)
            group = WriteGroup(rules, views, content.statements)
            version = content.version
            for header, batch in batches:
                version = group.admit(header, batch, version, wall_ms)
            if not group.staged:
                return group.answers, None, None
            record = group_record(group.staged, rules.shape)
            failure = _oversize(record) or self._write(record)
            return group.answers, record if failure is None else None, failure

    def _shape_now(self) -> BatchShape:
        """The shape for the columns as they are. Two threads that find it old make it twice."""
        columns, shape = self._content.columns, self._shape
        if shape is None or shape.columns is not columns:
            shape = self._shape = BatchShape(columns)
        return shape

    def _write(self, record: GroupRecord) -> MetaError | None:
        """Writes a group. Returns None if it is durable, and nobody had taken over; otherwise the
        error for the group."""
        try:
            with self._serving.in_doubt():
                self.log.append(record.payload, record.schemas, self._content.sequence + 1)
                self._serving.look()
        except Unavailable as error:
            if error.code == "storage-full":
                return error  # nothing was written
            return unknown_outcome(error)
        except MetaError as error:
            return unknown_outcome(error)
        return None


def _oversize(record: GroupRecord) -> MetaError | None:
    """Returns the error for a group whose record no copy takes: it is not written."""
    size = len(record.payload)
    if size <= RECORD_BYTES_MAX:
        return None
    if len(record.content.statements) == 1:
        return too_large(size)
    return Unavailable(what="the region", reason="the batches that wait together are too large")


def _without_frames(error: MetaError) -> MetaError:
    """The error of a batch as an answer: the frames of its way hold the rows of the whole group."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


@dataclass(frozen=True, slots=True)
class OrderedGroup:
    """A group that was judged, and written unless nothing of it was admitted. Of its rows it has
    those of the record alone: it may wait for copies for long."""

    answers: GroupAnswers
    wall_ms: int
    record: GroupRecord | None
    """The record written; None if nothing was written, or its writing failed."""
    position: LogPosition
    """The last of the log: that of the record, if there is one."""
    failure: MetaError | None

    @property
    def logged(self) -> PositionedRecord | None:
        """The group as its copies are sent it."""
        if self.record is None:
            return None
        return PositionedRecord(self.position, self.record.payload, self.record.schemas)


class WriteGroup:
    """Judges the batches of a group, each on the rows as those before it leave them. Writes
    nothing."""

    def __init__(
        self, terms: BatchRules, views: Mapping[int, LookupView], statements: StatementMemory
    ) -> None:
        self._terms = terms
        self._views = views
        self._statements = statements
        self._current = {family: StagedVersions() for family in views}
        self._slots: dict[str, int] = {}
        self._resting: set[int] = set()
        """Slots of refusals that rest on what this very group has staged."""
        self._results: list[Applied | MetaError] = []
        self.staged: list[Staged] = []

    def admit(self, header: BatchHeader, batch: pa.RecordBatch, last: int, wall_ms: int) -> int:
        """Judges the next batch; `last` is the highest version given so far.

        Returns the highest version after it.
        """
        try:
            self._results.append(self._judge(header, batch, last, wall_ms))
        except MetaError as error:
            self._results.append(_without_frames(error))
        return self.staged[-1].statement.version if self.staged else last

    @property
    def answers(self) -> GroupAnswers:
        """The answers so far. The group itself, with the rows that it has staged, may go then."""
        staged = frozenset(batch.statement.version for batch in self.staged)
        return GroupAnswers(tuple(self._results), staged, frozenset(self._resting))

    def _judge(
        self, header: BatchHeader, batch: pa.RecordBatch, last: int, wall_ms: int
    ) -> Applied:
        if header.epoch != self._terms.epoch:
            raise Conflict("epoch-mismatch", epoch=self._terms.epoch, found=header.epoch)
        if (first := self._first_answer(header.statement_id)) is not None:
            return replace(first, repeated=True)
        sent_ms = self._statements.time_of(header.sent_ms, wall_ms)
        check_floor(self._terms.schema, header.schema_version)
        check_maintained(self._terms.schema, header.maintains_indexes)
        intake = self._taken_in(header, batch)
        self._check_families([part.family for part in intake.parts], header.schema_version)
        self._check_expectations(intake.expected)
        if not self._terms.remembers_more:
            raise Unavailable("statement-memory-full", what="the node")
        version = next_version(last, wall_ms)
        self._stage(header, intake, version, sent_ms)
        return Applied(version, intake.rows)

    def _taken_in(self, header: BatchHeader, batch: pa.RecordBatch) -> BatchIntake:
        """A region that is opened anew has the columns of the newest version, of which its sender
        may not know yet: what does not fit them is made again for that version."""
        try:
            return take_in(batch, self._terms.shape)
        except Refused as error:
            newest = self._terms.schema.version
            if header.schema_version >= newest:
                raise
            facts = {"current": newest, "found": header.schema_version}
            raise Conflict("schema-version-stale", **facts) from error

    def _first_answer(self, statement_id: str) -> Applied | None:
        if statement_id in self._slots:
            earlier = self._results[self._slots[statement_id]]
            assert isinstance(earlier, Applied), "only admitted statements have a slot"
            return earlier
        statement = self._statements.find(statement_id)
        return None if statement is None else Applied(statement.version, statement.rows)

    def _check_families(self, families: Sequence[int], schema_version: int) -> None:
        for family in families:
            if family != ROWS:
                check_index(self._terms.schema, family, schema_version)

    def _check_expectations(self, expected: Mapping[int, Expectations]) -> None:
        """Raises Conflict for the first family that fails."""
        for family, expectations in expected.items():
            failed = self._failed(family, expectations)
            if failed:
                if not self._current[family].versions(expectations.keys).keys().isdisjoint(failed):
                    self._resting.add(len(self._results))
                exists = all(expectations.of(key) == ABSENT for key in failed)
                where = {} if family == ROWS else {"index": family}
                raise Conflict(
                    "already-exists" if exists else "version-mismatch",
                    keys=[key.hex() for key in failed[:FAILED_KEYS_SHOWN]],
                    failed=len(failed),
                    **where,
                )

    def _failed(self, family: int, expected: Expectations) -> list[bytes]:
        """Keys whose version is another than is expected."""
        versions = newest_versions(self._views[family], expected.keys)
        current = self._current[family].versions(expected.keys)
        if current:
            versions.update((key, current[key]) for key in expected.keys.values if key in current)
        if not versions and expected.versions is None:  # new rows, as they should be
            return []
        keys = expected.keys.values
        return [key for key in keys if versions.get(key, ABSENT) != expected.of(key)]

    def _stage(self, header: BatchHeader, intake: BatchIntake, version: int, sent_ms: int) -> None:
        slot, id = len(self._results), header.statement_id
        statement = LoggedStatement(id, version, intake.rows, header.schema_version, sent_ms)
        self.staged.append(Staged(slot, statement, intake.parts))
        self._slots[id] = slot
        for part in intake.parts:
            self._current[part.family].stage(part, version)
