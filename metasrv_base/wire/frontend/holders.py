"""Messages between holders of schema leases and metasrv (docs/protocols.md P6).

A holder is a process that computes statements from the catalog that it streams: a frontend.
`sequence` rises with every acknowledgement of one incarnation; the lease in an answer is counted
from before the acknowledgement of that sequence was first sent.
"""

from pydantic import Field

from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel

PINS_MAX = 4_096
TRANSACTION_CHARS_MAX = 200


class Pin(WireModel):
    """The oldest schema version of one table that a holder still uses, and who does."""

    table_id: Int64
    schema_version: Int64
    transaction: str = Field(min_length=1, max_length=TRANSACTION_CHARS_MAX)
    """The oldest transaction that is bound to it, for people: an id, as `018f3c0a-...`."""
    age_ms: Int64
    """Age of that transaction, in ms."""


class HolderRegisterRequest(WireModel):
    """`POST /internal/v1/holders/{holder_id}/register`, at every start, and whenever a lease could
    not be renewed in time. A new incarnation ends the one before."""

    format: PositiveInt64 = 1
    cluster_id: str | None
    """The cluster of the process; None if it never belonged to one."""
    holder_id: str
    incarnation: str
    address: str
    """Base URL under which clients and metasrv reach it."""
    version: str
    """Version of the holder's program."""
    pinned: Listed[Pin] = Field(default=(), max_length=PINS_MAX)
    """Versions that transactions of an earlier incarnation of this process still use: one pin
    for each table."""


class HolderRegisterAnswer(WireModel):
    """The holder serves nothing before it has applied `catalog_version`. Its first lease is counted
    from before this registration was sent."""

    cluster_id: str
    term: Int64
    lease_ms: Int64
    acknowledge_ms: Int64
    """Longest interval between acknowledgements, in ms; several fit in a lease."""
    transaction_age_max_ms: Int64
    """A transaction that is older ends: `transaction-too-old`."""
    catalog_version: Int64
    metasrvs: list[str] = Field(default_factory=list)
    """URLs of the servers there are: each of them streams the catalog."""


class AcknowledgeRequest(WireModel):
    """`PUT /internal/v1/holders/{holder_id}/acknowledge`. Heard in (incarnation, sequence) order.

    Version and pins are of one moment: whatever binds to a table after it binds to what the
    catalog at `version`, or a newer one, says of it.
    """

    format: PositiveInt64 = 1
    cluster_id: str
    holder_id: str
    incarnation: str
    sequence: int = Field(ge=0, lt=2**53)
    version: int = Field(ge=0, lt=2**53)
    """Version of the catalog that the holder has applied."""
    pinned: Listed[Pin] = Field(default=(), max_length=PINS_MAX)
    """Pins: one for each table that open transactions use, scans and index reads included. Uses
    of a table as of `version` may be left out."""
    statement_p99_ms: float | None = Field(default=None, ge=0)
    """The p99 of the statements since the last acknowledgement; null: there were none."""


class AcknowledgeAnswer(WireModel):
    sequence: Int64
    term: Int64
    lease_ms: Int64
    acknowledge_ms: Int64
    transaction_age_max_ms: Int64
    catalog_version: Int64
    """The leader's."""


class SignOffAnswer(WireModel):
    """`DELETE /internal/v1/holders/{holder_id}?incarnation=`: no step waits for it any more."""

    holder_id: str


class PinBody(Pin):
    """A table that a holder uses at an older schema version than it has."""

    table: str | None
    """`catalog.schema.name`; null: there is no such table any more."""


class SchemaLeaseBody(WireModel):
    """A holder, as the leader knows it."""

    holder_id: str
    incarnation: str
    address: str
    version: str
    registered_at: str
    """RFC 3339."""
    have: Int64 | None
    """The catalog version it acknowledged; null: not heard by this leader yet."""
    acknowledged_ms_ago: Int64 | None
    lease_left_ms: Int64
    """Time until no lease of it can be alive, by the clock of the leader."""
    pinned: Listed[PinBody]
    statement_p99_ms: float | None


class RefusedBody(WireModel):
    """Statements that came to regions below their floor, which refused them: no row is wrong."""

    table_id: Int64
    table: str | None
    """`catalog.schema.name`; null: there is no such table any more."""
    holder_id: str | None
    """Holder whose batches were refused; null: reads, and batches without a holder."""
    count: Int64
    """The count since each node started, as nodes last reported it."""


class SchemaLeaseList(WireModel):
    """Answer of `GET /v1/schema-leases`."""

    holders: Listed[SchemaLeaseBody]
    """Schema leases by id."""
    refused: Listed[RefusedBody] = ()
    """Refusals of all tables and holders, whatever the request filters by."""
    catalog_version: Int64
    """The leader's."""
