"""Transitions of a schema as clients see them, in a procedure that published them."""

from typing import Literal

from metasrv_base.elements.states import ElementState
from metasrv_base.wire.model import Int64, Listed, WireModel


class ShiftBody(WireModel):
    """A change of state of one element of a table."""

    what: Literal["column", "index", "constraint", "table"]
    id: Int64
    name: str
    before: ElementState
    after: ElementState


class LateBody(WireModel):
    """A holder of a schema lease that was waited for."""

    holder: str
    waited_ms: Int64
    """Duration from the beginning of the wait, in ms."""
    went: Literal["followed", "removed"]
    """The holder acknowledged; or it signed off, or its lease expired."""
    transaction: str | None
    """The last one of it that kept an older version in use."""


class TransitionBody(WireModel):
    """A published schema version of a table: the time of its publication, and the wait for its
    holders."""

    table_id: Int64
    schema_version: Int64
    shifts: Listed[ShiftBody]
    """At most 32."""
    regions: Int64
    """Number of regions prepared for the version before it was published."""
    told_ms: Int64
    """Duration of that preparation, in ms."""
    catalog_version: Int64 | None
    """The version of the catalog that published it."""
    published_at: str
    """RFC 3339, like the one below."""
    drained_at: str | None
    """Time from which no holder used an older version; null: no wait for that has ended (yet)."""
    drain_ms: Int64 | None
    """Duration from publication to that time, in ms."""
    holders: Int64 | None
    """Number of holders that had acknowledged the version by then."""
    late: Listed[LateBody]
    """The slowest of those that were waited for, at most 8."""
