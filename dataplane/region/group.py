"""A group of batches on its way to one fsync: what is admitted, in order, and what each is told.

Nothing here writes. A batch is judged on the rows as the batches before it in the group leave them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from base.errors import Conflict, MetaError, Refused, Unavailable
from base.wire.batches import BatchHeader
from dataplane.region.batch_format import BatchHead, LoggedBatch, decode_batch, encode_batch
from dataplane.region.columns import DELETE, OP, ColumnDef
from dataplane.region.families import ROWS, Part, sliced
from dataplane.region.floor import check_floor, check_index, check_maintained
from dataplane.region.intake import ABSENT, Intake, take_in
from dataplane.region.lookup import View, newest_versions
from dataplane.region.schema import RegionSchema
from dataplane.region.statements import StatementMemory
from dataplane.region.versions import next_version

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
class Terms:
    """What a region demands of every batch."""

    epoch: int
    schema: RegionSchema
    columns: Sequence[ColumnDef]


@dataclass(frozen=True, slots=True)
class Staged:
    """An admitted batch; `parts` share the memory of `payload`, so that what is served is what
    would be replayed."""

    slot: int
    statement_id: str
    version: int
    payload: bytes
    parts: Sequence[Part]
    rows: int


class Group:
    def __init__(
        self, terms: Terms, views: Mapping[int, View], statements: StatementMemory
    ) -> None:
        self._terms = terms
        self._views = views
        self._statements = statements
        self._current: dict[int, dict[bytes, int]] = {family: {} for family in views}
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
            self._results.append(self._judge(header, batch, next_version(last, wall_ms)))
        except MetaError as error:
            self._results.append(error)
        return self.staged[-1].version if self.staged else last

    def results(self, failure: MetaError | None = None) -> list[Applied | MetaError]:
        """One answer for each batch, in order. `failure`: why nothing staged is acknowledged.

        A refusal that rests on a staged batch is not given then: nobody knows the batch."""
        if failure is None:
            return self._results
        # A repeat of a statement of this very group bears its version: no answer is out yet.
        staged = {batch.version for batch in self.staged}
        not_judged = failure if isinstance(failure, Unavailable) else Unavailable(**failure.facts)
        results: list[Applied | MetaError] = []
        for slot, result in enumerate(self._results):
            if isinstance(result, Applied):
                results.append(failure if result.version in staged else result)
            else:
                results.append(not_judged if slot in self._resting else result)
        return results

    def _judge(self, header: BatchHeader, batch: pa.RecordBatch, version: int) -> Applied:
        if header.epoch != self._terms.epoch:
            raise Conflict("epoch-mismatch", epoch=self._terms.epoch, found=header.epoch)
        if (first := self._first_answer(header.statement_id)) is not None:
            return replace(first, repeated=True)
        check_floor(self._terms.schema, header.schema_version)
        check_maintained(self._terms.schema, header.maintains_indexes)
        intake = self._taken_in(header, batch)
        self._check_families([part.family for part in intake.parts], header.schema_version)
        self._check_expectations(intake.expected)
        self._stage(header, intake, version)
        return Applied(version, intake.rows.num_rows)

    def _taken_in(self, header: BatchHeader, batch: pa.RecordBatch) -> Intake:
        """A region that is opened anew has the columns of the newest version, of which its sender
        may not know yet: what does not fit them is made again for that version."""
        try:
            return take_in(batch, self._terms.columns)
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

    def _check_expectations(self, expected: Mapping[int, Mapping[bytes, int]]) -> None:
        """Of what failed, the first family is told."""
        for family, versions in expected.items():
            failed = self._failed(family, versions)
            if failed:
                if not self._current[family].keys().isdisjoint(failed):
                    self._resting.add(len(self._results))
                exists = all(versions[key] == ABSENT for key in failed)
                where = {} if family == ROWS else {"index": family}
                raise Conflict(
                    "already-exists" if exists else "version-mismatch",
                    keys=[key.hex() for key in failed[:FAILED_KEYS_SHOWN]],
                    failed=len(failed),
                    **where,
                )

    def _failed(self, family: int, expected: Mapping[bytes, int]) -> list[bytes]:
        """Keys whose version is another than is expected."""
        if not expected:
            return []
        found = newest_versions(self._views[family], list(expected))
        current = self._current[family]
        found.update((key, current[key]) for key in expected if key in current)
        return [key for key, version in expected.items() if found.get(key, ABSENT) != version]

    def _stage(self, header: BatchHeader, intake: Intake, version: int) -> None:
        head = BatchHead(
            version=version,
            statement_id=header.statement_id,
            schema_version=header.schema_version,
        )
        payload = encode_batch(LoggedBatch(head, intake.rows))
        rows = decode_batch(payload, "own batch").rows
        slot = len(self._results)
        parts = [
            Part(part.family, own, part.keys)
            for part, (_, own) in zip(intake.parts, sliced(rows), strict=True)
        ]
        statement, count = header.statement_id, rows.num_rows
        self.staged.append(Staged(slot, statement, version, payload, parts, count))
        self._slots[statement] = slot
        for part in parts:
            ops = part.rows.column(OP).to_pylist()
            versions = (ABSENT if op == DELETE else version for op in ops)
            self._current[part.family].update(zip(part.keys, versions, strict=True))
