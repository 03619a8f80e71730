"""A group of batches on its way to one fsync: its answers, its admitted batches, and its record.

Pure: nothing here reads or writes a file.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.engine.shape import BatchShape, FamilyShape
from dataplane.region.format.columns import DELETE, OP
from dataplane.region.format.families import FamilyRows
from dataplane.region.format.row_keys import FEW, RowKeys
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_group import (
    TOMBSTONES,
    GroupPart,
    LoggedGroup,
    LoggedSchema,
    LoggedStatement,
    decode_group,
    encode_group,
)
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.batches import ABSENT

TOMBSTONES_MIN = 512
TOMBSTONE_BYTES_MIN = 256 << 10
"""Tombstones of a group, and of one family, that are logged without values: so many, or so many
bytes with all columns. Fewer are logged as puts are, so that a replay joins small groups of both.
"""


@dataclass(frozen=True, slots=True)
class Applied:
    """The batch is durable and readable, and no other leader had taken over when it became so."""

    version: int
    """Row version of all its rows."""
    rows: int
    repeated: bool = False
    """Whether the statement was applied before, so that nothing was written now."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """The conditions that a region sets for every batch."""

    epoch: int
    schema: RegionSchema
    shape: BatchShape
    remembers_more: bool = True
    """Whether the node has memory for further statements."""


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


@dataclass(frozen=True, slots=True)
class GroupAnswers:
    """The answers to the batches of a group, in order, without any of its rows."""

    by_batch: Sequence[Applied | MetaError]
    """The answer to each batch, if the group is durable and may be acknowledged."""
    staged: Collection[int]
    """Row versions of the admitted batches."""
    resting: Collection[int]
    """Places of refusals that rest on what this very group has staged."""

    def results(self, failure: MetaError | None = None) -> list[Applied | MetaError]:
        """One answer for each batch. `failure`: why nothing staged is acknowledged.

        A refusal that rests on a staged batch is not given then: nobody knows the batch."""
        if failure is None:
            return list(self.by_batch)
        # A repeat of a statement of this very group bears its version: no answer is out yet.
        not_judged = failure if isinstance(failure, Unavailable) else Unavailable(**failure.facts)
        results: list[Applied | MetaError] = []
        for slot, result in enumerate(self.by_batch):
            if isinstance(result, Applied):
                results.append(failure if result.version in self.staged else result)
            else:
                results.append(not_judged if slot in self.resting else result)
        return results


class StagedVersions:
    """Versions of the rows of one family as the batches staged so far leave them. Worked out when
    a later batch of the group has keys among them: a group of one batch never does."""

    def __init__(self) -> None:
        self._versions: dict[bytes, int] = {}
        self._waiting: list[tuple[FamilyRows, int]] = []

    def stage(self, part: FamilyRows, version: int) -> None:
        self._waiting.append((part, version))

    def versions(self, keys: RowKeys) -> Mapping[bytes, int]:
        """Versions of *keys*, at least of those that have one. ABSENT: the row was deleted."""
        if all(_are_apart(part.keys, keys) for part, _ in self._waiting):
            return self._versions
        for part, version in self._waiting:
            self._versions.update(dict.fromkeys(part.keys.values, version))
            ops = np.asarray(part.rows.column(OP))
            deleted = np.flatnonzero(ops == DELETE).tolist()
            self._versions.update((part.keys.values[position], ABSENT) for position in deleted)
        self._waiting.clear()
        return self._versions


def _are_apart(keys: RowKeys, other: RowKeys) -> bool:
    """Whether the ranges of their keys do not overlap. Of few keys it is not asked, since a group
    may have many such batches."""
    if min(len(keys), len(other)) <= FEW:
        return False
    first, last = keys.bounds
    low, high = other.bounds
    return last < low or high < first


def group_record(staged: Sequence[Staged], shape: BatchShape) -> GroupRecord:
    """Encodes the admitted batches of a group for the log. There is one at least."""
    statements = [batch.statement for batch in staged]
    rows: dict[int, list[tuple[int, FamilyRows]]] = {}
    for position, batch in enumerate(staged):
        for part in batch.parts:
            rows.setdefault(part.family, []).append((position, part))
    parts = [
        _part(shape.of(family), family, [(position, part.rows) for position, part in some])
        for family, some in sorted(rows.items())
    ]
    payload = encode_group(statements, parts)
    used = {part.schema.id: part.schema for part in parts}
    by_id = {schema.id: schema.schema for schema in used.values()}
    keys = {family: [part.keys for _, part in some] for family, some in rows.items()}
    content = decode_group(payload, by_id, "own group", keys)
    return GroupRecord(payload, list(used.values()), content)


def _part(shape: FamilyShape, family: int, rows: Sequence[tuple[int, pa.RecordBatch]]) -> GroupPart:
    """The rows of a family as they are logged. Nobody reads the values of a tombstone."""
    if not _are_many_tombstones([batch for _, batch in rows]):
        return GroupPart(family, shape.logged, rows)
    bare = [(position, batch.select(TOMBSTONES.schema.names)) for position, batch in rows]
    return GroupPart(family, TOMBSTONES, bare)


def _are_many_tombstones(batches: Sequence[pa.RecordBatch]) -> bool:
    if batches[0].column(OP)[0].as_py() != DELETE:  # as of most groups
        return False
    rows = sum(batch.num_rows for batch in batches)
    is_many = rows >= TOMBSTONES_MIN or sum(map(_bytes_of, batches)) >= TOMBSTONE_BYTES_MIN
    return is_many and all(pc.min(batch.column(OP)).as_py() == DELETE for batch in batches)


def _bytes_of(batch: pa.RecordBatch) -> int:
    size: int = batch.nbytes
    return size
