"""A snapshot of the tables that benchmarks/service/filled.py wrote, without a server that makes it.

A server reads the log of a million tables and writes the same parts in many minutes. An item is
made here by the real code once, and stamped with the numbers of each table.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from benchmarks.service.filled import (
    AT_ONCE,
    DEADLINE_MS,
    NO_NUMBER,
    NO_TIME,
    NO_VERSION,
    Filling,
    commit,
    create_txn,
    numbers_of,
    places_of,
)
from benchmarks.service.stamped import Mould
from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import items_of
from keys.catalog.snapshot_writing import EMPTY
from keys.catalog.tables.part_filling import PART_JSON_BYTES
from keys.commit.batch import VERSION_KEY, LogHead
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.model.snapshot.snapshots import (
    PartsDigest,
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
    sealed,
)
from keys.store.kv import Get, Kv, Put, Request
from keys.value import decode, encode
from metasrv_base.concurrency.fanout import fan_out


async def write_snapshot(filling: Filling, kv: Kv, line: LogHead, now_ms: int) -> None:
    """*line*: the one at which the tables began, by whoever has its fence."""
    version = line.version + filling.tables
    parts, size_bytes, digest = 0, 0, PartsDigest()
    page = await kv.range(Get(VERSION_KEY), deadline_ms=DEADLINE_MS)
    revision = page.items[0].mod_revision  # behind all tables: nothing else was written
    waiting: list[Request] = []
    for raw in sealed_parts(version, texts_of(filling, await base_of(kv, line), line, now_ms)):
        put = Put(bytes(SnapshotPartKey(version, parts)), raw)
        waiting.append(Request((line.fence,), (put,)))
        parts, size_bytes = parts + 1, size_bytes + len(raw)
        digest.add(raw)
        if len(waiting) == AT_ONCE:
            await fan_out([partial(commit, kv, one) for one in waiting], at_once=AT_ONCE)
            waiting = []
    for left in waiting:
        await commit(kv, left)
    ref = SnapshotRef(
        version=version,
        revision=revision,
        at_ms=line.at_ms + filling.tables,
        parts=parts,
        size_bytes=size_bytes,
        log_bytes=0,
        digest=str(digest),
        made_at_ms=now_ms,
    )
    kept = SnapshotVersion(kept=(EMPTY, ref) if filling.has_log else (ref,))
    adopts = Put(bytes(SnapshotVersionKey()), encode(kept))
    await commit(kv, Request((line.fence,), (adopts,)))


async def base_of(kv: Kv, line: LogHead) -> Catalog:
    """The catalog before the first table."""
    catalog = Catalog()
    for version in range(1, line.version + 1):
        key = CatalogUpdateKey(version)
        page = await kv.range(Get(bytes(key)), deadline_ms=DEADLINE_MS)
        (item,) = page.items
        update = decode(CatalogUpdate, item.value, key=str(key))
        catalog = catalog.apply(update, item.mod_revision)
    return catalog


def texts_of(filling: Filling, base: Catalog, line: LogHead, now_ms: int) -> Iterator[bytes]:
    """Yields the JSON of all items, in the order of a snapshot."""
    yield from (item.model_dump_json().encode() for item in items_of(base))
    moulds = [
        _mould_of(filling, base, NO_NUMBER + number, now_ms) for number in range(filling.nodes)
    ]
    for number in range(filling.tables):
        stamped = moulds[number % filling.nodes].stamped(numbers_of(filling, line, number))
        yield from (put.value for put in stamped)


def _mould_of(filling: Filling, base: Catalog, number: int, now_ms: int) -> Mould:
    entries = create_txn(filling, number, now_ms).entries
    update = CatalogUpdate(version=NO_VERSION, at_ms=NO_TIME, procedure=None, entries=entries)
    before = Catalog(
        version=NO_VERSION - 1,
        catalogs=base.catalogs,
        schemas=base.schemas,
        schema_revisions=base.schema_revisions,
        placing=base.placing,
    )
    (item,) = (one for one in items_of(before.apply(update, 1)) if one.what == "table")
    puts = iter((Put(b"item", item.model_dump_json().encode()),))
    return Mould.of(puts, places_of(filling, number))


def sealed_parts(version: int, texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the stored parts, as `keys.catalog.snapshot_codec.parts_of` of a catalog."""
    part, size, number = list[bytes](), 0, 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size >= PART_JSON_BYTES:
            yield sealed(version, number, part)
            part, size, number = [], 0, number + 1
    if part:
        yield sealed(version, number, part)
