"""The catalog as lines of the feed. A table and an update are written once for all readers."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import RawItem
from keys.model.log import (
    CatalogDropping,
    CatalogUpdate,
    Entry,
    RouteChanged,
    SchemaDropping,
    TableAltered,
    TableCreated,
    TableDropped,
    TableRenamed,
    TablesExchanged,
    TableUndropped,
)
from metasrv.service.state.addresses import NodePlace
from metasrv.service.state.feed_tables import PUBLIC, feed_json, feed_table
from metasrv_base.concurrency.turns import Turns, by_turns
from metasrv_base.elements.states import ElementState
from metasrv_base.wire.frontend.feed import (
    AddressChange,
    FeedAlive,
    FeedLine,
    Goaway,
    SnapshotLine,
    Update,
)

WRITE_ONLY = ElementState.WRITE_ONLY
PART_TABLES = 64  # of a snapshot in one line: some 64 KiB, and all that a slow reader holds here
TABLES_KEPT = 4_096  # texts of tables, some 4 MiB of tables of a few columns
TABLES_AT_ONCE = 16
"""Tables of an update in one turn of the event loop: each may be in another part of the snapshot,
which takes 3 ms to inflate."""
BYTES_AT_ONCE = 1 << 18  # of their texts: some ms, where tables have thousands of columns
UPDATES_KEPT = 256  # texts of the last updates: readers that follow are nearly all at the newest

Wanted = frozenset[int] | None
"""Ids of the tables that a reader asked for; None: all."""


@dataclass(slots=True)
class FeedLines:
    """Lines for any reader, and the texts that several will want."""

    _tables: OrderedDict[int, tuple[CatalogTable, bytes]] = field(default_factory=OrderedDict)
    _updates: OrderedDict[int, bytes] = field(default_factory=OrderedDict)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the reader whose line is made; who is cancelled leaves it to the next."""

    def snapshot(
        self, catalog: Catalog, table_ids: Wanted, places: Mapping[str, NodePlace]
    ) -> Iterator[bytes]:
        """The parts of *catalog*, each made when it is asked for."""
        if table_ids is None:
            tables = self._all_texts(catalog)
        else:
            tables = (self._text(table, catalog) for table in living(catalog, table_ids))
        is_last = False
        while not is_last:
            part = list(islice(tables, PART_TABLES))
            is_last = len(part) < PART_TABLES
            sent = places if is_last else {}
            rest = SnapshotLine(
                version=catalog.version,
                tables=(),
                addresses={node: sent[node].address for node in sent},
                zones={node: sent[node].zone for node in sent},
                is_last=is_last,
            )
            yield _filled(line_of(rest), b",".join(part))

    async def update(self, update: CatalogUpdate, after: Catalog, table_ids: Wanted) -> bytes:
        """Returns the line for *update*; *after* is the catalog that it made. A line of many tables
        takes turns, and the other readers wait for it: one line is made at a time."""
        assert after.version == update.version
        if table_ids is None and (text := self._updates.get(update.version)) is not None:
            return text
        async with self._making:
            if table_ids is not None:
                return await by_turns(self._update(update, after, table_ids))
            text = self._updates.get(update.version)
            if text is None:  # and not made by the reader that was waited for
                text = await by_turns(self._update(update, after, None))
                self._updates[update.version] = text
                if len(self._updates) > UPDATES_KEPT:
                    self._updates.popitem(last=False)
            return text

    def _update(self, update: CatalogUpdate, after: Catalog, table_ids: Wanted) -> Turns[bytes]:
        touched = {table for entry in update.entries for table in touched_by(entry, after)}
        hidden = {table for entry in update.entries for table in hidden_by(entry, after)} - touched
        if table_ids is not None:
            touched, hidden = touched & table_ids, hidden & table_ids
        living_ids, texts = set[int](), list[bytes]()
        count = size_bytes = 0
        for table in living(after, frozenset(touched)):
            if count >= TABLES_AT_ONCE or size_bytes >= BYTES_AT_ONCE:
                yield
                count = size_bytes = 0
            living_ids.add(table.info.table_id)
            texts.append(self._text(table, after))
            count, size_bytes = count + 1, size_bytes + len(texts[-1])
        rest = Update(
            version=update.version,
            hidden=tuple(sorted(hidden)),
            gone=tuple(sorted(touched - living_ids)),
        )
        return _filled(line_of(rest), b",".join(texts))

    def _all_texts(self, catalog: Catalog) -> Iterator[bytes]:
        """Yields the texts of all tables that statements use, hidden ones too."""
        for item in catalog.tables.raw_items():
            if isinstance(item, CatalogTable):
                if item.dropped_at_ms is None:
                    yield self._text(item, catalog)
            elif item["dropped_at_ms"] is None:
                yield _packed_text(item, catalog)

    def _text(self, table: CatalogTable, catalog: Catalog) -> bytes:
        if not catalog.shows(table):  # nobody asks for it often
            return _text_of(table, WRITE_ONLY)
        number = table.info.table_id
        cached = self._tables.get(number)
        if cached is not None and cached[0] is table:
            self._tables.move_to_end(number)
            return cached[1]
        text = _text_of(table, PUBLIC)
        self._tables[number] = table, text
        self._tables.move_to_end(number)
        if len(self._tables) > TABLES_KEPT:
            self._tables.popitem(last=False)
        return text


_NO_TABLES = b'"tables":[]'


def _filled(line: bytes, tables: bytes) -> bytes:
    """*line* with the texts of its tables: the first field of that name is its own."""
    return line.replace(_NO_TABLES, b'"tables":[' + tables + b"]", 1)


def line_of(line: FeedLine) -> bytes:
    return line.model_dump_json().encode() + b"\n"


GOAWAY = line_of(Goaway())


def alive(catalog: Catalog, leader: str | None, *, is_stale: bool) -> bytes:
    return line_of(FeedAlive(version=catalog.version, leader=leader, is_stale=is_stale))


def moved(before: Mapping[str, NodePlace], after: Mapping[str, NodePlace]) -> Iterator[bytes]:
    """Places of nodes that are not reached, or do not stand, as *before*."""
    for node in sorted(before.keys() | after.keys()):
        now = after.get(node)
        if now is None:
            yield line_of(AddressChange(node=node, address=None))
        elif now != before.get(node):
            yield line_of(AddressChange(node=node, address=now.address, zone=now.zone))


def living(catalog: Catalog, table_ids: frozenset[int]) -> Iterator[CatalogTable]:
    """The named tables that statements use, hidden ones too, by id."""
    tables = (
        catalog.tables[table_id] for table_id in sorted(table_ids) if table_id in catalog.tables
    )
    return (table for table in tables if table.dropped_at_ms is None)


def touched_by(entry: Entry, after: Catalog) -> Iterator[int]:
    """Ids of the tables that are others after *entry*, or gone."""
    match entry:
        case TableCreated() | TableAltered() | TableRenamed() | TableUndropped():
            yield entry.info.table_id
        case TablesExchanged():
            yield from (entry.first.table_id, entry.second.table_id)
        case TableDropped() | RouteChanged():
            yield entry.table_id
        case _:  # of a table that is gone already, or of what is no table
            return


def hidden_by(entry: Entry, after: Catalog) -> Iterator[int]:
    """Ids of the tables that nobody finds any more after *entry*, and that are what they were."""
    match entry:
        case SchemaDropping():
            yield from after.names.get((entry.info.catalog, entry.info.name), {}).values()
        case CatalogDropping():
            for (catalog, _), names in after.names.items():
                if catalog == entry.info.name:
                    yield from names.values()
        case _:
            return


def _text_of(table: CatalogTable, state: ElementState) -> bytes:
    return feed_table(table, state).model_dump_json().encode()


def _packed_text(item: RawItem, catalog: Catalog) -> bytes:
    info = item["info"]
    is_public = info["state"] == PUBLIC and catalog.is_visible(info["catalog"], info["schema"])
    state = PUBLIC if is_public else WRITE_ONLY
    try:
        return feed_json(item, state)
    except KeyError:  # written before a field existed, which has a default
        return _text_of(catalog.tables[info["table_id"]], state)
