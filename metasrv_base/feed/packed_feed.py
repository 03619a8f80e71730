"""Parts of a snapshot of the feed, packed: a table is decoded when a statement asks for it.

A frontend is given all tables and uses few of them. Of each it reads the head; the text stays
deflated, some 40 bytes for a table that is like others.
"""

import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from immutables import Map

from metasrv_base.byte_cache import ByteCache
from metasrv_base.elements.states import ElementState
from metasrv_base.pack_map import Pack
from metasrv_base.values.intern_fields import Shapes, intern_fields
from metasrv_base.wire.frontend.feed import FeedColumn, FeedTable

FullName = tuple[str, str, str]
"""Catalog, schema, table."""
DECODED_BYTES_MAX = 16 << 20
"""JSON of the tables that are kept decoded, which take up to some five times as much."""
INFLATED_BYTES_MAX = 8 << 20
"""JSON of the parts that are kept inflated."""
LEVEL = 1  # of the compression: the fastest
OFFSET_BITS = 32  # of a location
LINE_END = b"\n"


@dataclass(frozen=True, slots=True)
class ComingTables:
    """The tables of a snapshot as far as its parts have come."""

    parts: Map[int, bytes] = field(default_factory=Map)
    """Texts of tables, a line each, deflated."""
    locations: Map[int, int] = field(default_factory=Map)
    """Places of tables by table id."""
    names: Map[FullName, int] = field(default_factory=Map)
    """Ids of the tables that statements may find."""

    def with_part(self, tables: Iterable[Mapping[str, Any]]) -> "ComingTables":
        """Adds the parsed *tables* as one compressed part. Raises KeyError or TypeError for what is
        no table."""
        number, offset = len(self.parts), 0
        locations, names, lines = self.locations.mutate(), self.names.mutate(), list[bytes]()
        for table in tables:
            lines.append(orjson.dumps(table))
            locations[int(table["id"])] = number << OFFSET_BITS | offset
            offset += len(lines[-1]) + len(LINE_END)
            if table.get("state", ElementState.PUBLIC) == ElementState.PUBLIC:
                names[full_name(table)] = int(table["id"])
        text = zlib.compress(LINE_END.join(lines), LEVEL)
        return replace(
            self,
            parts=self.parts.set(number, text),
            locations=locations.finish(),
            names=names.finish(),
        )


def full_name(table: Mapping[str, Any]) -> FullName:
    """Tables of one schema share its name in memory."""
    return sys.intern(table["catalog"]), sys.intern(table["schema_name"]), table["name"]


class PackedFeedTables(Pack[FeedTable]):
    """Changes in nothing but what it keeps decoded."""

    def __init__(self, coming: ComingTables) -> None:
        self._parts = coming.parts
        self._locations = coming.locations
        self._shapes: Shapes[FeedColumn] = Shapes()
        self._decoded: ByteCache[int, FeedTable] = ByteCache(DECODED_BYTES_MAX)
        self._inflated: ByteCache[int, bytes] = ByteCache(INFLATED_BYTES_MAX)

    def __contains__(self, table_id: object) -> bool:
        return table_id in self._locations

    def __len__(self) -> int:
        return len(self._locations)

    def __iter__(self) -> Iterator[int]:
        return iter(self._locations)

    def get(self, table_id: int) -> FeedTable:
        """Raises KeyError; ValueError for what is no table."""
        table = self._decoded.get(table_id)
        if table is None:
            number, offset = divmod(self._locations[table_id], 1 << OFFSET_BITS)
            text = self._inflated.get(number)
            if text is None:
                text = zlib.decompress(self._parts[number])
                self._inflated.put(number, text, len(text))
            line, _, _ = text[offset:].partition(LINE_END)
            table = decoded(line)
            self._shapes, vars(table)["columns"] = self._shapes.met(tuple(table.columns))
            self._decoded.put(table_id, table, len(line))
        return table

    def items(self) -> Iterator[tuple[int, FeedTable]]:
        for part in self._parts.values():
            for line in zlib.decompress(part).split(LINE_END):
                if line:
                    table = decoded(line)
                    yield table.id, table


def decoded(text: bytes) -> FeedTable:
    table = FeedTable.model_validate_json(text)
    intern_fields(table, table.partition, *table.indexes, *table.constraints, *table.regions)
    return table
