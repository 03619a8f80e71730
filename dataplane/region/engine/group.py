"""A group of batches on its way to one fsync: what is admitted, in order, and what each is told.

Nothing here writes. A batch is judged on the rows as the batches before it in the group leave them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dataplane.region.engine.intake import ABSENT, BatchIntake, Expectations, take_in
from dataplane.region.engine.shape import BatchShape
from dataplane.region.format.columns import DELETE, OP
from dataplane.region.format.families import ROWS, FamilyRows
from dataplane.region.format.row_keys import FEW, RowKeys
from dataplane.region.format.schema import RegionSchema
from dataplane.region.format.versions import next_version
from dataplane.region.log.logged_group import (
    GroupPart,
    LoggedGroup,
    LoggedSchema,
    LoggedStatement,
    decode_group,
    encode_group,
)
from dataplane.region.manifests.floor import check_floor, check_index, check_maintained
from dataplane.region.memory.statements import StatementMemory
from dataplane.region.reads.lookup import LookupView, newest_versions
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable
from metasrv_base.wire.node.batches import BatchHeader

FAILED_KEYS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Applied:
    """The batch is durable and readable, and no other leader had taken over when it became so."""

    version: int
    """Row version of all its rows."""
    rows: int
    repeated: bool = False
    """True: the statement was applied before; nothing was written now."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """What a region demands of every batch."""

    epoch: int
    schema: RegionSchema
    shape: BatchShape
    remembers_more: bool = True
    """False: the node has no memory for further statements."""


@dataclass(frozen=True, slots=True)
class Staged:
    """An admitted batch."""

    slot: int
    statement: LoggedStatement
    parts: Sequence[FamilyRows]


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The admitted batches of a group, as they are logged. `content` shares the memory of
    `payload`, so that a region serves the rows that a replay would find."""

    payload: bytes
    schemas: Sequence[LoggedSchema]
    content: LoggedGroup


class WriteGroup:
    def __init__(
        self, terms: BatchRules, views: Mapping[int, LookupView], statements: StatementMemory
    ) -> None:
        self._terms = terms
        self._views = views
        self._statements = statements
        self._current = {family: _Current() for family in views}
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
            self._results.append(error)
        return self.staged[-1].statement.version if self.staged else last

    def results(self, failure: MetaError | None = None) -> list[Applied | MetaError]:
        """One answer for each batch, in order. `failure`: why nothing staged is acknowledged.

        A refusal that rests on a staged batch is not given then: nobody knows the batch."""
        if failure is None:
            return self._results
        # A repeat of a statement of this very group bears its version: no answer is out yet.
        staged = {batch.statement.version for batch in self.staged}
        not_judged = failure if isinstance(failure, Unavailable) else Unavailable(**failure.facts)
        results: list[Applied | MetaError] = []
        for slot, result in enumerate(self._results):
            if isinstance(result, Applied):
                results.append(failure if result.version in staged else result)
            else:
                results.append(not_judged if slot in self._resting else result)
        return results

    def record(self) -> GroupRecord:
        """Encodes the admitted batches for the log. One batch at least must have been admitted."""
        statements = [one.statement for one in self.staged]
        staged: dict[int, list[tuple[int, FamilyRows]]] = {}
        for place, one in enumerate(self.staged):
            for part in one.parts:
                staged.setdefault(part.family, []).append((place, part))
        schemas = {family: self._terms.shape.of(family).logged for family in staged}
        parts = [
            GroupPart(family, schemas[family], [(place, part.rows) for place, part in some])
            for family, some in sorted(staged.items())
        ]
        payload = encode_group(statements, parts)
        used = {schema.id: schema for schema in schemas.values()}
        known = {schema.id: schema.schema for schema in used.values()}
        keys = {family: [part.keys for _, part in some] for family, some in staged.items()}
        content = decode_group(payload, known, "own group", keys)
        return GroupRecord(payload, list(used.values()), content)

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
            found = {"current": newest, "found": header.schema_version}
            raise Conflict("schema-version-stale", **found) from error

    def _first_answer(self, statement_id: str) -> Applied | None:
        if statement_id in self._slots:
            earlier = self._results[self._slots[statement_id]]
            assert isinstance(earlier, Applied), "only admitted statements have a slot"
            return earlier
        known = self._statements.find(statement_id)
        return None if known is None else Applied(known.version, known.rows)

    def _check_families(self, families: Sequence[int], schema_version: int) -> None:
        for family in families:
            if family != ROWS:
                check_index(self._terms.schema, family, schema_version)

    def _check_expectations(self, expected: Mapping[int, Expectations]) -> None:
        """Of what failed, the first family is told."""
        for family, asked in expected.items():
            failed = self._failed(family, asked)
            if failed:
                if not self._current[family].versions(asked.keys).keys().isdisjoint(failed):
                    self._resting.add(len(self._results))
                exists = all(asked.of(key) == ABSENT for key in failed)
                where = {} if family == ROWS else {"index": family}
                raise Conflict(
                    "already-exists" if exists else "version-mismatch",
                    keys=[key.hex() for key in failed[:FAILED_KEYS_SHOWN]],
                    failed=len(failed),
                    **where,
                )

    def _failed(self, family: int, expected: Expectations) -> list[bytes]:
        """Keys whose version is another than is expected."""
        if not len(expected.keys):
            return []
        found = newest_versions(self._views[family], expected.keys)
        current = self._current[family].versions(expected.keys)
        if current:
            found.update((key, current[key]) for key in expected.keys.values if key in current)
        if not found and expected.versions is None:  # new rows, as they should be
            return []
        return [key for key in expected.keys.values if found.get(key, ABSENT) != expected.of(key)]

    def _stage(self, header: BatchHeader, intake: BatchIntake, version: int, sent_ms: int) -> None:
        slot, id = len(self._results), header.statement_id
        statement = LoggedStatement(id, version, intake.rows, header.schema_version, sent_ms)
        self.staged.append(Staged(slot, statement, intake.parts))
        self._slots[id] = slot
        for part in intake.parts:
            self._current[part.family].stage(part, version)


class _Current:
    """Versions of the rows of one family as the batches staged so far leave them. Worked out when
    a later batch of the group has keys among them: a group of one batch never does."""

    def __init__(self) -> None:
        self._versions: dict[bytes, int] = {}
        self._waiting: list[tuple[FamilyRows, int]] = []

    def stage(self, part: FamilyRows, version: int) -> None:
        self._waiting.append((part, version))

    def versions(self, keys: RowKeys) -> Mapping[bytes, int]:
        """At least of those of *keys* that have one. ABSENT: the row was deleted."""
        if all(_are_apart(part.keys, keys) for part, _ in self._waiting):
            return self._versions
        for part, version in self._waiting:
            self._versions.update(dict.fromkeys(part.keys.values, version))
            ops = np.asarray(part.rows.column(OP))
            deleted = np.flatnonzero(ops == DELETE).tolist()
            self._versions.update((part.keys.values[at], ABSENT) for at in deleted)
        self._waiting.clear()
        return self._versions


def _are_apart(one: RowKeys, other: RowKeys) -> bool:
    """Whether the ranges of their keys do not overlap. Of few keys it is not asked, since a group
    may have many such batches."""
    if min(len(one), len(other)) <= FEW:
        return False
    first, last = one.bounds
    low, high = other.bounds
    return last < low or high < first
