"""Rows as clients of a frontend see them: columns by name, values in their JSON form.

`POST /v1/tables/{catalog}/{schema}/{table}/rows` writes, `GET` of the same reads by primary key or
by an index, `GET .../scan` reads all of them, in pages.
"""

from typing import Any, Literal

from pydantic import Field

from metasrv_base.wire.model import Int64, Listed, WireModel

ROWS_MAX = 10_000
"""Most rows of one page."""
SCHEMA_VERSION = "x-schema-version"
"""Header of an answer that is no JSON object: the schema version that it was computed with."""
MIN_SCHEMA_VERSION = "x-min-schema-version"
"""Header of a request: a frontend that does not know the table at that schema version yet first
learns of it. So what one frontend was seen to have is there at the others (P7)."""
SENT_MS = "x-statement-sent-ms"
"""Header of a request that writes: when its first sender made it, in milliseconds since 1970, the
same in all copies. Without it, its arrival at a frontend counts."""
SCHEMA_VERSION_KEY = b"metasrv.schema_version"
"""The same in the metadata of an Arrow schema."""

JsonRow = dict[str, Any]
"""Values by column name: null, true and false, numbers and texts
(metasrv_base/schema/values.py).
"""


class RowsRequest(WireModel):
    """Rows of one region are taken together or not at all. A `delete` names the primary key only,
    an `update` that and what it changes; what an `insert` or `upsert` does not name has its
    default."""

    op: Literal["insert", "upsert", "update", "delete"]
    rows: Listed[JsonRow] = Field(min_length=1)


class RegionDone(WireModel):
    """The result of a statement in one region."""

    region_id: str
    outcome: Literal["applied"] = "applied"
    rows: Int64
    version: Int64 | None
    """Row version given to all of them, of a stream to the last; null: there was nothing to do."""
    repeated: bool
    """Whether an earlier copy of the same statement was applied."""


class WriteAnswer(WireModel):
    """Every row was applied; anything less is an error with `regions`."""

    rows: Int64
    schema_version: Int64
    """The newest that was used."""
    regions: Listed[RegionDone]


class RowsAnswer(WireModel):
    rows: Listed[JsonRow]
    schema_version: Int64
    next_page_token: str | None = None
    """Opaque; null on the last page. Good at the frontend that gave it, while its transaction
    lives; of pages that stand apart, at every frontend, with the query that they were asked by."""


class KeysRequest(WireModel):
    """`POST .../rows/get`: rows by primary key, in no order. Missing ones are left out."""

    keys: Listed[Listed[Any]] = Field(min_length=1, max_length=ROWS_MAX)
    """Key values of each row, in the order of the primary key."""


class RegionSum(WireModel):
    region_id: str
    rows: Int64
    checksum: str


class ChecksumAnswer(WireModel):
    """A checksum of the rows: equal for equal rows, in any order and distribution over regions."""

    rows: Int64
    checksum: str
    """16 hexadecimal digits: the sum over the regions, mod 2^64."""
    regions: Listed[RegionSum]
    schema_version: Int64
