"""Rows on the wire between SDK or frontend and a region: batches, reads and scans.

`POST /node/v1/regions/{region_id}/batch` takes an Arrow IPC stream of one schema. Its columns are
`_key: binary` (metasrv_base/schema/keycodec.py), `_op: uint8` (OP_PUT or OP_DELETE), `_expect:
int64` (nullable: the row version that must be current; ABSENT: none; null: anything),
`c{column id}` for each value, and if it bears index entries, `_family: int32` (null or 0: a row of
the table; else the id of the index) and `_row: binary`: an entry's one value, the key of its row.
The header stands as JSON in the Arrow schema's metadata under HEADER_KEY. A batch is atomic over
rows and entries, and durable before it is answered.
"""

from pydantic import Field

from metasrv_base.wire.limits import MAX_LAG_MS_MAX
from metasrv_base.wire.model import Int32, Int64, RegionId, WireModel

HEADER_KEY = b"metasrv.batch"
OP_PUT = 0
OP_DELETE = 1
ABSENT = 0
"""Expected version of a key that must not be there."""
NEXT_KEY = b"metasrv.next_key"
SCAN_ROWS_MAX = 100_000
"""Rows of one answer to a scan."""


class BatchHeader(WireModel):
    """Header of a batch: the table, its schema version and the leadership of the region it is
    for."""

    table_id: Int64
    schema_version: Int64
    epoch: Int64
    statement_id: str = Field(min_length=1, max_length=64)
    """A region answers a repeated statement with its first result."""
    sent_ms: Int64 | None = Field(default=None, ge=1)
    """Time at which the first sender made the statement, by that sender's wall clock: the same
    in all copies, also those passed on. Null: not given, and the time of arrival counts."""
    maintains_indexes: bool = False
    """The sender writes what the table's indexes ask for at that schema version, be it nothing. A
    region with indexes takes no batch of anybody else."""
    holder: str | None = Field(default=None, min_length=1, max_length=64)
    """The id of the holder that computed it; null: none was named. Refusals are counted by it."""


class BatchResult(WireModel):
    region_id: RegionId
    version: Int64
    """Row version given to every row of the batch."""
    rows: Int64
    """Rows written, entries included."""
    repeated: bool = False
    """Whether this is the first answer, given again."""


class ReadHeader(WireModel):
    """Header of every read; the rules of a batch apply, but a read changes nothing."""

    table_id: Int64
    schema_version: Int64
    epoch: Int64
    max_lag_ms: Int64 | None = Field(default=None, ge=1, le=MAX_LAG_MS_MAX)
    """The age that rows may have, so that a copy may answer, whatever the epoch is: it has all rows
    that were acknowledged so long before. Null: the leader alone answers."""


class GetRows(ReadHeader):
    """`POST .../get`: rows by key. Missing keys are left out."""

    keys: list[str] = Field(max_length=10_000)
    """Hexadecimal; of rows, or with `index` of its entries."""
    index: Int32 | None = None
    """The entries themselves are read, with their own versions and no values. None: rows."""
    columns: list[Int32] | None = None
    """Column ids; None: all."""
    bytes_max: int | None = Field(default=None, ge=1, le=1 << 30)
    """The answer ends after the key with which it is larger, and says that there are more: in
    Arrow by a last record batch without rows. Keys above its last one are asked for again. None: an
    answer above the node's limit is refused."""


class ScanRows(ReadHeader):
    """`POST .../scan`: live rows in key order, or in the order of an index's entries. Arrow IPC
    stream or JSON, by `Accept`."""

    index: Int32 | None = None
    """Index to scan; entries and their rows are read at one moment, and the keys of entries are
    `_entry` in Arrow. None: scan by the keys of rows."""
    entries_only: bool = False
    """Whether, with `index`, entries alone are read, with their own versions and no values, also
    those without a row."""
    from_key: str | None = None
    """Hexadecimal, inclusive; of a row, or with `index` of an entry. None: from the first."""
    to_key: str | None = None
    """Hexadecimal, exclusive; None: to the last."""
    columns: list[Int32] | None = None
    values_only: bool = False
    """The answer has neither `_key` nor `_version`. Its last record batch, without rows, names the
    key that continues in its metadata, under NEXT_KEY, in hexadecimal; without it there is no more.
    It exceeds `limit` by less than a part of a MiB. In Arrow, by the keys of rows."""
    limit: int = Field(default=10_000, ge=1, le=SCAN_ROWS_MAX)
    """Rows in one answer. The answer's last key, or last entry, with 00 appended, continues."""
    bytes_max: int | None = Field(default=None, ge=1, le=1 << 30)
    """An Arrow stream ends after about so many bytes, with at least one row; if that is before
    `limit` and the range end, its last record batch is without rows. None: it is not bounded."""


class Rows(WireModel):
    """The JSON form of an answer: values by column id, as text of the column type's JSON form."""

    rows: list["Row"]
    more: bool


class Row(WireModel):
    key: str
    version: Int64
    values: dict[str, object]
    entry: str | None = None
    """Key of the entry through which it was found; None: not through an index."""


class ChecksumRequest(ReadHeader):
    """`POST .../checksum`: what the region holds, in one number."""

    index: Int32 | None = None
    """Index whose entries are summed; None: the rows are."""


class ChecksumResult(WireModel):
    region_id: RegionId
    rows: Int64
    checksum: str
    """Order-independent over (key, values) of live rows: 16 hexadecimal digits; sums mod 2^64."""
