"""What a new leader finds: every record, read at a revision at which it already led."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import ConfigDict

from base.errors import Corrupt, NotLeader
from keys.kv import Compare, Get, KeyValue, Readable, Request
from keys.records import ProcedureKey, ProcedureRecord
from keys.scan import scan
from keys.value import decode
from procedures.entry import Entry
from procedures.machine import Kind
from procedures.runner import Held


async def read_records(kv: Readable, fence: Compare, *, deadline_ms: int) -> tuple[KeyValue, ...]:
    """All records at a revision read under the fence. Raises NotLeader if it is lost."""
    barrier = Request(compares=(fence,), reads=(Get(fence.key, keys_only=True),))
    answer = await kv.txn(barrier, deadline_ms=deadline_ms)
    if not answer.succeeded:
        raise NotLeader(term=fence.mod_revision)
    items, _ = await scan(
        kv, ProcedureKey.under(), deadline_ms=deadline_ms, revision=answer.revision
    )
    return items


def entries_of(items: Iterable[KeyValue], kinds: Mapping[str, Kind[Any]]) -> list[Entry]:
    """One entry per record. What this server cannot run is parked: it keeps its locks."""
    return [_entry(item, kinds) for item in items]


def _entry(item: KeyValue, kinds: Mapping[str, Kind[Any]]) -> Entry:
    key = ProcedureKey.parse(item.key)
    record = _lenient(item, str(key))
    held = Held(key.procedure, record, item.mod_revision)
    kind = kinds.get(record.kind)
    if record.format > ProcedureRecord.newest_format:
        return Entry(held, parked=f"record format {record.format} is newer than this server")
    if kind is None or record.step not in kind.steps:
        return Entry(held, parked=f"kind {record.kind}, step {record.step} is not known here")
    if record.kind_format > kind.state.format:
        return Entry(held, parked=f"format {record.kind_format} of {record.kind} is newer")
    resumed = record.model_copy(update={"resumed": record.resumed + 1})
    return Entry(Held(key.procedure, resumed, item.mod_revision), kind=kind)


def _lenient(item: KeyValue, key: str) -> ProcedureRecord:
    """A record of a newer format is read as far as it is understood: its locks must be kept."""
    try:
        return decode(ProcedureRecord, item.value, key=key)
    except Corrupt:
        return decode(_AnyRecord, item.value, key=key)


class _AnyRecord(ProcedureRecord):
    newest_format: ClassVar[int] = sys.maxsize

    model_config = ConfigDict(extra="ignore")
