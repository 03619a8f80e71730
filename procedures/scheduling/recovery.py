"""Reads every procedure record once for a new leader, at a revision at which it already led."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import structlog

from keys.model.records import ProcedureKey, ProcedureRecord
from keys.model.salvage import UNREADABLE, salvaged
from keys.store.kv import Compare, Get, KeyValue, ReadableStore, Request
from keys.store.scan import pages
from metasrv_base.errors import Corrupt, NotLeader
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.runner import StoredRecord
from procedures.machine import Kind

AT_ONCE = 50  # records decoded between two yields: some 20 ms for those of creates

log = structlog.get_logger()


async def read_under(kv: ReadableStore, fence: Compare, *, deadline_ms: int) -> int:
    """A revision at which this leader still led. Raises NotLeader if it does not."""
    barrier = Request(compares=(fence,), reads=(Get(fence.key, keys_only=True),))
    answer = await kv.txn(barrier, deadline_ms=deadline_ms)
    if not answer.succeeded:
        raise NotLeader(term=fence.mod_revision)
    return answer.revision


async def read_records(
    kv: ReadableStore, fence: Compare, *, deadline_ms: int
) -> AsyncIterator[tuple[KeyValue, ...]]:
    """All records at a revision read under the fence, in slices of AT_ONCE. Raises NotLeader if
    it is lost."""
    revision = await read_under(kv, fence, deadline_ms=deadline_ms)
    async for page in pages(
        kv,
        ProcedureKey.under(),
        deadline_ms=deadline_ms,
        revision=revision,
        like=Get(b"", limit=AT_ONCE),
    ):
        yield page.items


def entries_of(items: Iterable[KeyValue], kinds: Mapping[str, Kind[Any]]) -> list[ActiveProcedure]:
    """Returns one entry per record. A procedure that this server cannot run is parked and keeps
    its locks. A key that names no procedure is logged and left alone."""
    entries = []
    for item in items:
        try:
            key = ProcedureKey.parse(item.key)
        except Corrupt:
            name = item.key.decode("utf-8", "backslashreplace")
            log.exception("value_unreadable", key=name, revision=item.mod_revision)
        else:
            entries.append(_entry(key, item, kinds))
    return entries


def _entry(key: ProcedureKey, item: KeyValue, kinds: Mapping[str, Kind[Any]]) -> ActiveProcedure:
    record = salvaged(key, item.value)
    held = StoredRecord(key.procedure, record, item.mod_revision)
    kind = kinds.get(record.kind)
    if record.kind == UNREADABLE:
        locks = ", ".join(lock.key for lock in record.locks) or "none"
        return ActiveProcedure(
            held, parked=f"its record cannot be read; locks found in it: {locks}"
        )
    if record.format > ProcedureRecord.newest_format:
        return ActiveProcedure(
            held, parked=f"record format {record.format} is newer than this server"
        )
    if kind is None or record.step not in kind.steps:
        return ActiveProcedure(
            held, parked=f"kind {record.kind}, step {record.step} is not known here"
        )
    if record.kind_format > kind.state.format:
        return ActiveProcedure(
            held, parked=f"format {record.kind_format} of {record.kind} is newer"
        )
    resumed = record.model_copy(update={"resumed": record.resumed + 1})
    return ActiveProcedure(StoredRecord(key.procedure, resumed, item.mod_revision), kind=kind)
