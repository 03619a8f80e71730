"""Mistakes in the change of a schema under statements, planted for one world at a time."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from base.elements.graph import Act, Behaviour
from base.errors import Conflict
from base.wire.holders import Pin
from dataplane.datanode import rows
from dataplane.frontend.cases import Cases
from dataplane.frontend.holder import Holder
from dataplane.frontend.lease import SchemaLease
from dataplane.frontend.transactions import Transactions
from dataplane.frontend.writing import Writing
from dataplane.region import columns, content, group, opening, reading
from dataplane.region.disk import Disk
from dataplane.region.manifest import SealedEntry
from dataplane.region.names import segments
from dataplane.region.sealed_log import SealedLog, seal_segment
from keys.tables import TableInfo
from metasrv.holders.book import HolderEntry, Wait
from procedures import transitions
from procedures.kinds import index_kinds
from tests.procedures.planted import NO_DELETE_ONLY, NOT_DRAINED, NOT_TOLD, Patch

_WHERE = Cases.where


def _never(act: Act) -> Callable[[Cases, Behaviour, pa.BooleanArray, Act], pa.BooleanArray]:
    """A frontend that does all but one of what the graphs say."""

    def where(
        self: Cases, does: Behaviour, touched: pa.BooleanArray, asked: Act
    ) -> pa.BooleanArray:
        return self._all(False) if asked is act else _WHERE(self, does, touched, asked)

    return where


def _no_pins(self: Transactions, now_ms: int) -> tuple[Pin, ...]:
    """A holder that tells of no transaction that is open."""
    return ()


def _pins_not_looked_at(self: HolderEntry, wait: Wait) -> bool:
    """Who knows the new version is taken for one that uses it."""
    return self.have is None or self.have < wait.need


def _only_pins_looked_at(self: HolderEntry, wait: Wait) -> bool:
    """Who has no old transaction is taken for one that knows the new version."""
    pin = self.pinned.get(wait.table_id)
    return pin is not None and pin.schema_version < wait.schema_version


def _for_ever(self: SchemaLease, now_ms: int) -> bool:
    return self.deadline_ms is not None


def _never_over(self: Holder) -> bool:
    return False


_SENT = Writing._sent


async def _conflict_is_done(self: Writing, at: Any, batch: pa.RecordBatch, call: Any) -> Any:
    """A statement whose rows were changed by another one meanwhile is told as done."""
    try:
        found = await _SENT(self, at, batch, call)
    except Conflict as error:
        if error.code == "schema-version-stale":
            raise
        found = None
    return found or Forgiven()


class Forgiven:
    version, repeated = 1, False


def _nulls(field: pa.Field, ops: pa.Array | pa.ChunkedArray) -> pa.Array:
    """What a row was written without is null, whatever its column says."""
    return pa.nulls(len(ops), field.type)


async def _no_reorg(*_: object) -> None:
    """Rows of before have no entries."""


def _none_dead(info: TableInfo) -> tuple[int, ...]:
    """Regions are not told which indexes are gone."""
    return ()


def _any_version(schema: object, found: int) -> None:
    """A region that takes batches and reads of every version."""


def _beyond_the_seal(disk: Disk, root: str, entry: SealedEntry) -> SealedLog:
    """Replays what a deposed leader wrote behind the seal, too."""
    (name,) = segments([entry.name])
    log = seal_segment(disk, root, name, is_last=True)
    return SealedLog(entry, log.batches, log.sequence)


def _patched(*patches: Patch) -> Sequence[Patch]:
    return patches


PATCHES: dict[str, Iterable[Patch]] = {
    "drain skipped": _patched(NOT_DRAINED),
    "regions not told": _patched(NOT_TOLD),
    "delete-only skipped": _patched(NO_DELETE_ONLY),
    "pins not told": _patched((Transactions, "pins", _no_pins)),
    "pins not looked at": _patched((HolderEntry, "uses_below", _pins_not_looked_at)),
    "only pins looked at": _patched((HolderEntry, "uses_below", _only_pins_looked_at)),
    "schema lease without end": _patched(
        (SchemaLease, "is_held", _for_ever), (Holder, "is_over", property(_never_over))
    ),
    "old entries stay": _patched((Cases, "where", _never(Act.REMOVE))),
    "no new entries": _patched((Cases, "where", _never(Act.PUT))),
    "uniqueness not looked at": _patched((Cases, "where", _never(Act.CHECK))),
    "conflict told as done": _patched((Writing, "_sent", _conflict_is_done)),
    "origin default forgotten": _patched((columns, "originals", _nulls)),
    "reorg skipped": _patched((index_kinds, "continue_reorg", _no_reorg)),
    "dead index not told": _patched((transitions, "dead_indexes", _none_dead)),
    "floor not looked at": _patched(
        *((module, "check_floor", _any_version) for module in (content, reading, group, rows))
    ),
    "replay past the seal": _patched((opening, "read_sealed", _beyond_the_seal)),
}
"""By name."""
