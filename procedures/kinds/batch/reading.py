"""The metadata that a batch is planned on: every key that its commands look at, at one revision."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from keys.commit.txn import Read, Snapshot
from keys.key import Key, Range
from keys.model.catalogs import SchemaNameKey
from keys.model.placing.placements import PlacedTable, PlacedTableKey
from keys.model.placing.tablespaces import GroupedTable, GroupedTableKey, TablespaceKey
from keys.model.tables import TableInfoKey, TableNameKey, TableNameRecord
from keys.store.kv import TXN_OPS_MAX, Get, KeyValue, Request
from keys.value import decode
from metasrv_base.errors import Unavailable
from procedures.commands.in_order import BatchCommand, ListedSnapshot, SweepCommand
from procedures.context import Context

LOOKS_MAX = 3  # at a schema in which tables come and go, until one look finds what the last did
FAMILIES: tuple[type[Key[Any]], ...] = (
    SchemaNameKey,
    TableNameKey,
    TablespaceKey,
    PlacedTableKey,
    GroupedTableKey,
)


async def read(commands: Sequence[BatchCommand], context: Context) -> ListedSnapshot | None:
    """Reads all that the commands need, at one revision; returns None if that is more keys than one
    transaction compares."""
    keys = dict.fromkeys(chain.from_iterable(command.keys() for command in commands))
    ranges = tuple(
        dict.fromkeys(
            keys_inside
            for command in commands
            if isinstance(command, SweepCommand)
            for keys_inside in command.ranges()
        )
    )
    inside: tuple[Key[Any], ...] = ()
    for _ in range(LOOKS_MAX):
        snapshot = await _at_one_revision((*keys, *inside), ranges, context)
        if snapshot is None:
            return None
        standing = tuple(_inside(snapshot))
        if set(standing) <= {*keys, *inside}:
            return snapshot
        inside = standing
    raise Unavailable(what="schemas", reason="tables come into what is dropped")


async def _at_one_revision(
    keys: Iterable[Key[Any]], ranges: tuple[Range, ...], context: Context
) -> ListedSnapshot | None:
    distinct = tuple(dict.fromkeys(keys))
    if len(distinct) + len(ranges) > TXN_OPS_MAX:
        return None
    gets = (
        *(Get(bytes(key)) for key in distinct),
        *(Get(start, end, limit=TXN_OPS_MAX + 1) for start, end in ranges),
    )
    kv, deadline_ms = context.ports.kv, context.ports.deadline_ms
    answer = await kv.txn(Request(reads=gets), deadline_ms=deadline_ms)
    reads = {
        bytes(key): _read(key, items)
        for key, items in zip(distinct, answer.ranges[: len(distinct)], strict=True)
    }
    items = [item for some in answer.ranges[len(distinct) :] for item in some]
    listed: dict[type[Key[Any]], list[Key[Any]]] = {}
    for item in sorted({item.key: item for item in items}.values(), key=lambda item: item.key):
        family = next(each for each in FAMILIES if _is_of(each, item.key))
        key = family.parse(item.key)
        listed.setdefault(family, []).append(key)
        reads.setdefault(item.key, _read(key, (item,)))
    return ListedSnapshot(Snapshot(answer.revision, reads), ranges, listed)


def _is_of(family: type[Key[Any]], raw: bytes) -> bool:
    start, end = family.under()
    return start <= raw < end


def _read(key: Key[Any], items: Sequence[KeyValue]) -> Read:
    if not items:
        return Read(None, 0)
    return Read(decode(key.value_type, items[0].value, key=str(key)), items[0].mod_revision)


def _inside(snapshot: ListedSnapshot) -> Iterable[Key[Any]]:
    """Keys of what stands in the ranges: of a table, also what it is."""
    for keys in snapshot.listed.values():
        for key in keys:
            yield key
            record = snapshot.get(key)
            if isinstance(record, TableNameRecord | PlacedTable | GroupedTable):
                yield TableInfoKey(record.table_id)
