"""Bodies of operators' controls of procedures, and of the lists of locks and poisons."""

from typing import Literal

from pydantic import Field

from metasrv_base.wire.api.procedures import ProcedureError, ResourceBody
from metasrv_base.wire.model import Listed, PositiveInt64, WireModel

PERCENT_MAX = 95


class ThrottleRequest(WireModel):
    """Body of `POST /v1/procedures/{id}/throttle`."""

    percent: int = Field(default=0, ge=0, le=PERCENT_MAX)
    """The share of time that the steps which move data rest; 0: none."""
    rows_per_s: PositiveInt64 | None = None
    """Rate at which a reorg reads rows, in rows/s; null: as fast as concurrent statements allow."""


class LockPlaceBody(WireModel):
    """The claim of one procedure on one key."""

    procedure_id: str
    kind: str
    mode: Literal["shared", "exclusive"]


class LockBody(WireModel):
    """A key that procedures hold or wait for."""

    key: str
    """Key of the lock, such as `table:1024`; `route:` and `region:` are the placement side."""
    holders: Listed[LockPlaceBody]
    """Procedures that hold all their locks."""
    queue: Listed[LockPlaceBody]
    """Procedures that wait, for this key or another, in order of submission; one that claims
    only the placement side precedes those that wait for a lock of the schema side."""


class LockList(WireModel):
    """A page of locks, by key."""

    locks: Listed[LockBody]
    next_page_token: str | None = None
    """Opaque; null on the last page."""


class PoisonBody(WireModel):
    """A resource that a change left half undone. Other changes of it are refused until it is
    cleared; failover is not."""

    resource: ResourceBody
    procedure_id: str
    """`retry` it to try its undo again; or finish the undo by hand, and clear this."""
    kind: str
    step: str
    """Step whose undo failed."""
    error: ProcedureError
    at: str
    """RFC 3339."""


class PoisonList(WireModel):
    """All poisons, by resource."""

    poisons: Listed[PoisonBody]
