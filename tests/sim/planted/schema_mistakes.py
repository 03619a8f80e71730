"""Mistakes in the change of a schema under statements, planted for one world at a time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.datanode.regions import refusals
from dataplane.frontend.lease.holder import HolderLoop
from dataplane.frontend.lease.lease import SchemaLease
from dataplane.frontend.lease.transactions import Transaction, Transactions
from dataplane.frontend.planning import entries
from dataplane.frontend.planning.cases import Cases
from dataplane.frontend.statements.writes import Writes
from dataplane.log.records import HEADER_BYTES, header_of
from dataplane.region.compaction import rewrite
from dataplane.region.disk.disk import Disk
from dataplane.region.engine import content, opening, reading, writer
from dataplane.region.format import conforming
from dataplane.region.format.names import segments
from dataplane.region.indexes.index_entries import entries_of
from dataplane.region.log.sealed_log import SealedLog, seal_segment
from dataplane.region.manifests.manifest import SealedEntry
from keys.commit import batch
from keys.model.tables import TableInfo
from metasrv.holders.holder_registry import HolderEntry, HolderRegistry, Wait
from metasrv_base.elements.graph import Act, Behaviour
from metasrv_base.errors import Conflict
from metasrv_base.wire.frontend.holders import Pin
from metasrv_base.wire.node.batches import ABSENT
from procedures.engine import control
from procedures.kinds.alter import index_kinds
from procedures.steps import region_orders as orders
from procedures.steps import transitions
from tests.crash.enumeration import Patch
from tests.crash.planted import NO_DELETE_ONLY, NOT_DRAINED, NOT_TOLD
from tests.sim.cluster import jobs

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
    """Takes a holder that knows the new version for one that uses it."""
    return self.have is None or self.have < wait.need


def _only_pins_looked_at(self: HolderEntry, wait: Wait) -> bool:
    """Takes a holder without an old transaction for one that knows the new version."""
    pin = self.pinned.get(wait.table_id)
    return pin is not None and pin.schema_version < wait.schema_version


def _for_ever(self: SchemaLease, now_ms: int) -> bool:
    return self.deadline_ms is not None


def _never_over(self: HolderLoop) -> bool:
    return False


_SENT = Writes._sent


async def _conflict_is_done(self: Writes, at: Any, batch: pa.RecordBatch, call: Any) -> Any:
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
    """Reads a column that a row was written without as null, whatever its default."""
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
    found = header_of(disk.read(f"{root}/{entry.name}", 0, HEADER_BYTES), entry.name)
    assert found is not None
    return replace(seal_segment(disk, root, found[1].owner, name, is_last=True), entry=entry)


_TELL = transitions.tell


async def _told_late(at: Any, info: TableInfo, route: Any, *, before: Any = None) -> Any:
    """A version is published first; that it raises the floor regions hear before the next one."""
    floor = info.schema_floor if before is None else info.schema_floor - 1
    return await _TELL(at, info.model_copy(update={"schema_floor": floor}), route, before=before)


def _at_once(self: HolderRegistry, now_ms: int) -> int:
    """A registration goes before the lease is over that was granted with it."""
    return now_ms


def _without_floor(order: Callable[..., Any]) -> Callable[..., Any]:
    def made(**facts: Any) -> Any:
        return order(**{**facts, "schema_floor": 0})

    return made


def _newest(rows_of: pa.Table, index: Any) -> pa.Table:
    """Takes rows that a job brings for newer than what statements wrote meanwhile."""
    found = entries_of(rows_of, index)
    versions = pc.add(found.column("_version"), pa.scalar(1_000, pa.int64()))
    place = found.schema.get_field_index("_version")
    return found.set_column(place, found.schema.field(place), versions)


def _without_tombstones(table: pa.Table, up_to: int | None) -> pa.Table:
    """A merge that does not look at marks: what a job brings later is not removed any more."""
    return _DROP_TOMBSTONES(table, None)


_DROP_TOMBSTONES = rewrite._without_tombstones


def _all_freed(removed: Sequence[tuple[bytes, bytes]], known: Any) -> Any:
    """A row that goes takes the entry with its values along, whichever row that leads to."""
    for key, _ in removed:
        yield key, known[key].version if key in known else ABSENT


_REQUEST = Writes.request


def _let_go(self: Writes, transaction: Transaction, *asked: Any) -> Any:
    """A holder that tells of transactions until their rows are sent, not until that is answered."""
    request = _REQUEST(self, transaction, *asked)
    self.statements.transactions.end(transaction)
    return request


_REFUSAL = control._refusal


def _cancelled_late(facts: control.ControlInput, asked: control.Control) -> str | None:
    """Undoes what has been published all the same."""
    return _REFUSAL(replace(facts, has_passed=False), asked)


_EFFECT = batch._effect


def _absent_is_not_done(request: Any, failed: Any, found: Any) -> Any:
    """A key that is gone as it should be is taken for a sign that nothing was done."""
    return _EFFECT(request, failed, found) or None


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
        (SchemaLease, "is_held", _for_ever), (HolderLoop, "is_over", property(_never_over))
    ),
    "old entries stay": _patched((Cases, "where", _never(Act.REMOVE))),
    "no new entries": _patched((Cases, "where", _never(Act.PUT))),
    "uniqueness not looked at": _patched((Cases, "where", _never(Act.CHECK))),
    "conflict told as done": _patched((Writes, "_sent", _conflict_is_done)),
    "origin default forgotten": _patched((conforming, "_default", _nulls)),
    "reorg skipped": _patched((index_kinds, "continue_reorg", _no_reorg)),
    "dead index not told": _patched((transitions, "dead_indexes", _none_dead)),
    "floor not looked at": _patched(
        *((module, "check_floor", _any_version) for module in (content, reading, writer, refusals))
    ),
    "publish before orders": _patched((transitions, "tell", _told_late)),
    "registration ends early": _patched((HolderRegistry, "_free_at", _at_once)),
    "floor not in the open order": _patched(
        *(
            (orders, name, _without_floor(vars(orders)[name]))
            for name in ("OpenRegion", "CreateRegion")
        )
    ),
    "backfill overwrites newer": _patched((jobs, "entries_of", _newest)),
    "tombstone dropped during a reorg": _patched(
        (rewrite, "_without_tombstones", _without_tombstones)
    ),
    "unique delete without a look": _patched((entries, "_freed", _all_freed)),
    "pin let go in flight": _patched((Writes, "request", _let_go)),
    "cancel after commit": _patched((control, "_refusal", _cancelled_late)),
    "absence taken for not done": _patched((batch, "_effect", _absent_is_not_done)),
    "replay past the seal": _patched((opening, "read_sealed", _beyond_the_seal)),
}
"""By name."""
