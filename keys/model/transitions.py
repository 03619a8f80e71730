"""Stored facts of a published schema transition, sufficient for a post-mortem without logs."""

from enum import StrEnum

from pydantic import Field

from keys.value import StoredPart
from metasrv_base.elements.states import ElementState

SHIFTS_MAX = 32  # elements named in one transition; the operations of one alter
LATE_MAX = 8  # holders named in one transition: the slowest
TRANSITIONS_MAX = 16  # the last ones of a record, so that it stays far below a transaction's bytes


class ElementChange(StoredPart):
    """One element of a table, from state to state."""

    what: str
    """`column`, `index`, `constraint` or `table`."""
    id: int
    name: str
    before: ElementState
    after: ElementState


class Went(StrEnum):
    """Reason for which the wait for a holder ended."""

    FOLLOWED = "followed"
    """The holder acknowledged, and no transaction of it used an older version any more."""
    REMOVED = "removed"
    """The holder signed off, or its lease had ended."""


class LateHolder(StoredPart):
    """A holder that a transition was waited for."""

    holder: str
    ms: int
    """Duration from the beginning of the wait, in ms."""
    went: Went
    transaction: str | None = None
    """The last of its transactions that was in the way; None: it had not told of the version."""


class Transition(StoredPart):
    """One schema version of one table: when it was published, and when every holder was there."""

    table_id: int
    schema_version: int
    shifts: tuple[ElementChange, ...] = Field(default=(), max_length=SHIFTS_MAX)
    regions: int
    """Number of regions prepared for the version before it was published."""
    told_ms: int
    """Duration of that preparation, in ms."""
    catalog_version: int | None
    """The version of the catalog that published it."""
    published_at_ms: int
    """Wall clock, as the one below."""
    drained_at_ms: int | None = None
    """Time from which no holder used an older version. None: no wait for that has ended (yet)."""
    holders: int | None = None
    """Number of holders that had acknowledged the version by then."""
    late: tuple[LateHolder, ...] = Field(default=(), max_length=LATE_MAX)
    """Holders that the transition waited for, the slowest first."""
