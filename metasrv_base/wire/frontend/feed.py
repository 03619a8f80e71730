"""The catalog as a stream, from any metasrv: `GET /internal/v1/catalog/watch?from=&tables=`.

One JSON document a line. First the parts of a snapshot, or, where `from` is still kept, nothing;
then one `update` for every version of the catalog, in order and without a gap; in between, nodes
that moved, and a sign of life each second. A reader that falls too far behind is given a new
snapshot. After `goaway`, or without a line for a few seconds, it asks another server, from the
version that it has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import not_
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, JsonValue, TypeAdapter

from metasrv_base.elements.states import ElementState
from metasrv_base.schema.partition import PartitionRule
from metasrv_base.wire.api.tables import RegionState
from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel

MEDIA_TYPE = "application/x-ndjson"
ALIVE_MS = 1_000
"""Between signs of life; a reader that has heard nothing for several of them goes elsewhere."""


class FeedColumn(WireModel):
    """A column as statements need it: hidden ones too, by their state."""

    id: Int64
    name: str
    type: str
    nullable: bool
    default: JsonValue = None
    """Value of a row that is written without the column, in JSON form; null: none."""
    origin_default: JsonValue = None
    """Value read from a row that was written before the column was added."""
    replaces: Int64 | None = None
    """Id of a column of another type, in whose place it comes."""
    state: ElementState


class FeedIndex(WireModel):
    """An index. Its entries are family `id` of every region of the table."""

    id: Int64
    name: str
    columns: Listed[Int64]
    """Column ids, in the order of the entries' keys."""
    unique: bool
    state: ElementState


class FeedConstraint(WireModel):
    id: Int64
    name: str
    kind: Literal["not-null", "check", "unique"]
    columns: Listed[Int64] = ()
    """Column ids."""
    expression: str | None = None
    """Expression of a check."""
    state: ElementState


class FeedRegion(WireModel):
    """Location of one region; the address of its leader is among the addresses of the nodes."""

    region_id: str
    """table_id << 32 | number, in decimal."""
    leader: str | None
    """Node id; null while the region is lost."""
    epoch: Int64
    state: RegionState
    copies: Listed[str] = Field(default=(), exclude_if=not_)
    """Ids of the nodes of its other copies in sync, which answer reads of a declared age."""


class FeedTable(WireModel):
    """All that a statement on a table needs, at one version of the catalog."""

    id: Int64
    catalog: str
    schema_name: str
    name: str
    version: Int64
    schema_version: Int64
    """Rises by one with every published transition of an element; batches and reads carry it."""
    schema_floor: Int64
    """The oldest schema version that regions take, or soon will."""
    state: ElementState = ElementState.PUBLIC
    """State of the table. In any but public, no new statement may find it; statements that have
    found it continue."""
    columns: Listed[FeedColumn]
    indexes: Listed[FeedIndex] = ()
    constraints: Listed[FeedConstraint] = ()
    primary_key: Listed[Int64]
    """Column ids."""
    partition: PartitionRule
    """Over column ids; the region's number is its place in `regions`."""
    regions: Listed[FeedRegion]


class SnapshotLine(WireModel):
    """A part of the whole catalog at one version. What a reader had is replaced by the parts up to
    the one that is the last, at once; addresses come with that one."""

    type: Literal["snapshot"] = "snapshot"
    version: Int64
    tables: Listed[FeedTable]
    addresses: dict[str, str] = Field(default_factory=dict)
    """Node id -> base URL."""
    zones: dict[str, str] = Field(default_factory=dict)
    """Node id -> its zone."""
    is_last: bool


class Update(WireModel):
    """The changes that one version of the catalog made to the tables of the request.

    A holder acknowledges at once an update that hides a table or takes one away that it has, or
    brings it at another schema version, under another name or with other columns: a change may be
    waiting for that. All others it tells of with its next acknowledgement.
    """

    type: Literal["update"] = "update"
    version: PositiveInt64
    tables: Listed[FeedTable] = ()
    """Tables that are new or changed, each in full."""
    hidden: Listed[Int64] = ()
    """Ids of tables of which nothing changed but that no statement may find them any more."""
    gone: Listed[Int64] = ()
    """Ids of tables that are not to be seen any more; a reader need not have had them."""


class AddressChange(WireModel):
    """A node registered, or is reached elsewhere, or is in another zone from now on."""

    type: Literal["address"] = "address"
    node: str
    address: str | None
    """Base URL; null: it is not registered any more."""
    zone: str | None = None
    """Its zone; null: not told."""


class FeedAlive(WireModel):
    """All that was applied here has been sent."""

    type: Literal["alive"] = "alive"
    version: Int64
    """Version of the catalog at this server; a reader that is ahead asks another server, or
    waits."""
    leader: str | None
    """URL of the leader as far as this server knows; to whom holders acknowledge."""
    is_stale: bool
    """This server has not heard from the store for longer than a lease: others know more."""


class Goaway(WireModel):
    """This server goes; the reader asks another."""

    type: Literal["goaway"] = "goaway"


FeedLine = Annotated[
    SnapshotLine | Update | AddressChange | FeedAlive | Goaway, Field(discriminator="type")
]
_LINES: TypeAdapter[FeedLine] = TypeAdapter(FeedLine)
_PART = b'{"type":"snapshot",'


@dataclass(frozen=True, slots=True)
class ParsedPart:
    """A SnapshotLine whose tables are parsed and not validated: a reader uses few of them."""

    version: int
    tables: Sequence[Mapping[str, Any]]
    addresses: Mapping[str, str]
    is_last: bool
    zones: Mapping[str, str] = field(default_factory=dict)
    type: Literal["snapshot"] = "snapshot"

    @classmethod
    def of(cls, line: SnapshotLine) -> "ParsedPart":
        return cls(
            line.version,
            [table.model_dump(mode="json") for table in line.tables],
            line.addresses,
            line.is_last,
            line.zones,
        )


HeardLine = FeedLine | ParsedPart


def read_line(line: bytes | str) -> HeardLine:
    """Raises ValueError for a line that no server of ours would send."""
    text = line.encode() if isinstance(line, str) else line
    if not text.startswith(_PART):
        return _LINES.validate_json(text)
    parsed = orjson.loads(text)
    tables = parsed.pop("tables", None)
    rest = SnapshotLine.model_validate({**parsed, "tables": ()}, strict=True)
    if not isinstance(tables, list) or not all(map(_has_head, tables)):
        raise ValueError("tables of a snapshot without their ids or names")
    return ParsedPart(rest.version, tables, rest.addresses, rest.is_last, rest.zones)


def _has_head(table: Any) -> bool:
    match table:
        case {"id": int(), "catalog": str(), "schema_name": str(), "name": str()}:
            return True
        case _:
            return False
